#include "tunnel/lane/stream_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tunnel/lane/stream_ids.h"

namespace braid::stream_desk_test {
namespace {

using Word = StreamDesk::Word;

struct StreamDeskTest : testing::Test {
  StreamDesk desk;
  StreamEvent event;
  char streams[2] = {};
  /// The desk does not look into streams.
  Stream& stream(size_t i) { return reinterpret_cast<Stream&>(streams[i]); }
};

TEST_F(StreamDeskTest, WhatHappensBetweenTwoPollsIsOneEvent) {
  StreamHandle a = desk.seat(stream(0));
  StreamHandle b = desk.seat(stream(1));
  desk.announce(a, 7);
  desk.tell(b, Word::kReadable);
  desk.tell(a, Word::kReadable);
  ASSERT_TRUE(desk.poll(event));
  EXPECT_EQ(event.stream, b) << "openings come last";
  ASSERT_TRUE(desk.poll(event));
  EXPECT_EQ(event.stream, a);
  EXPECT_TRUE(event.opened && event.readable);
  EXPECT_FALSE(event.writable || event.done || event.reset);
  EXPECT_FALSE(desk.poll(event));
}

// A peer that opens as many as it may must not keep the others waiting.
TEST_F(StreamDeskTest, OpeningsOfSessionsComeInTurn) {
  std::map<StreamHandle, uint32_t> sessionOf;
  auto open = [&](uint32_t session, int count) {
    for (int i = 0; i < count; ++i) {
      StreamHandle handle = desk.seat(stream(0));
      sessionOf[handle] = session;
      desk.announce(handle, session);
    }
  };
  std::vector<uint32_t> told;
  auto hear = [&](int count) {
    told.clear();
    while (count-- > 0 && desk.poll(event)) {
      EXPECT_TRUE(event.opened);
      told.push_back(sessionOf[event.stream]);
      desk.release(event.stream);
    }
  };
  open(7, 1000);
  hear(2);
  EXPECT_THAT(told, testing::ElementsAre(7, 7));
  open(9, 2);
  open(3, 1);
  hear(6);
  EXPECT_THAT(told, testing::ElementsAre(9, 3, 7, 9, 7, 7));
  hear(2000);
  EXPECT_EQ(told.size(), 995u);
  EXPECT_EQ(desk.size(), 0u);
}

TEST_F(StreamDeskTest, AnEndIsTheLastThatIsHeard) {
  StreamHandle a = desk.seat(stream(0));
  desk.tell(a, Word::kReadable);
  desk.end(a, StreamCause::kTimedOut);
  EXPECT_FALSE(desk.find(a));
  desk.tell(a, Word::kWritable);
  ASSERT_TRUE(desk.poll(event));
  EXPECT_EQ(event.reset, StreamCause::kTimedOut);
  EXPECT_FALSE(event.readable || event.writable || event.done);
  EXPECT_FALSE(desk.poll(event));
  EXPECT_EQ(desk.size(), 0u);
}

TEST_F(StreamDeskTest, AHandleIsNeverGivenTwice) {
  StreamHandle a = desk.seat(stream(0));
  desk.end(a, std::nullopt);
  StreamHandle b = desk.seat(stream(1));
  EXPECT_NE(b.place, a.place) << "its end was not heard yet";
  ASSERT_TRUE(desk.poll(event));
  EXPECT_TRUE(event.done);
  StreamHandle c = desk.seat(stream(0));
  EXPECT_EQ(c.place, a.place);
  EXPECT_NE(c, a);
  EXPECT_FALSE(desk.find(a));
  EXPECT_EQ(desk.find(c), &stream(0));
  EXPECT_FALSE(desk.find({})) << "nor is none";
  EXPECT_FALSE(desk.find({99, 1}));
}

TEST_F(StreamDeskTest, WhoLetsGoHearsNothingMore) {
  StreamHandle a = desk.seat(stream(0));
  desk.tell(a, Word::kReadable);
  desk.release(a);
  desk.end(a, StreamCause::kReset);
  EXPECT_FALSE(desk.poll(event));
  EXPECT_EQ(desk.size(), 0u);
}

TEST_F(StreamDeskTest, AStreamThatBeganAndEndedUnheardIsNotSpokenOf) {
  StreamHandle a = desk.seat(stream(0));
  desk.announce(a, 7);
  desk.end(a, StreamCause::kReset);
  EXPECT_FALSE(desk.poll(event));
  EXPECT_EQ(desk.size(), 0u);
}

TEST(StreamIds, EachIsNewOnceWhateverTheOrder) {
  StreamIds ids;
  for (uint64_t id : {8u, 0u, 4u, 2u}) {
    EXPECT_EQ(ids.look(StreamId(id)), StreamIds::Verdict::kNew);
    ids.mark(StreamId(id));
    EXPECT_EQ(ids.look(StreamId(id)), StreamIds::Verdict::kSeen);
  }
  EXPECT_EQ(ids.look(StreamId(6)), StreamIds::Verdict::kNew);
  ids.mark(StreamId(8 + 2 * StreamIds::kWindow));
  EXPECT_EQ(ids.look(StreamId(6)), StreamIds::Verdict::kStale);
  EXPECT_EQ(ids.look(StreamId(10)), StreamIds::Verdict::kNew) << "the bits of those before are gone";
  EXPECT_EQ(ids.look(StreamId(8)), StreamIds::Verdict::kStale);
}

}  // namespace
}  // namespace braid::stream_desk_test
