#include "tunnel/stream/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include <map>
#include <vector>

#include "tunnel/stream/session_streams.h"

namespace braid::registry_test {
namespace {

struct StreamRegistryTest : testing::Test {
  StreamRegistry registry;
  StreamEvent event;
  struct alignas(alignof(std::max_align_t)) StandIn {};
  StandIn streams[2];
  /// A stand-in for a stream; the registry never accesses its contents.
  Stream& stream(size_t i) { return reinterpret_cast<Stream&>(streams[i]); }
};

TEST_F(StreamRegistryTest, WhatHappensBetweenTwoPollsIsOneEvent) {
  StreamHandle a = registry.add(stream(0));
  StreamHandle b = registry.add(stream(1));
  registry.announce(a, 7);
  registry.tell(b, &StreamEvent::readable);
  registry.tell(a, &StreamEvent::readable);
  ASSERT_TRUE(registry.poll(event));
  EXPECT_EQ(event.stream, b) << "openings come last";
  ASSERT_TRUE(registry.poll(event));
  EXPECT_EQ(event.stream, a);
  EXPECT_TRUE(event.opened && event.readable);
  EXPECT_FALSE(event.writable || event.done || event.reset);
  EXPECT_FALSE(registry.poll(event));
}

// A peer that opens the maximum number of streams must not delay the others.
TEST_F(StreamRegistryTest, OpeningsOfSessionsComeInTurn) {
  std::map<StreamHandle, uint32_t> sessionOf;
  auto open = [&](uint32_t session, int count) {
    for (int i = 0; i < count; ++i) {
      StreamHandle handle = registry.add(stream(0));
      sessionOf[handle] = session;
      registry.announce(handle, session);
    }
  };
  std::vector<uint32_t> told;
  auto hear = [&](int count) {
    told.clear();
    while (count-- > 0 && registry.poll(event)) {
      EXPECT_TRUE(event.opened);
      told.push_back(sessionOf[event.stream]);
      registry.release(event.stream);
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
  EXPECT_EQ(registry.size(), 0u);
}

TEST_F(StreamRegistryTest, AnEndIsTheLastThatIsHeard) {
  StreamHandle a = registry.add(stream(0));
  registry.tell(a, &StreamEvent::readable);
  registry.end(a, StreamCause::kTimedOut);
  EXPECT_FALSE(registry.find(a));
  registry.tell(a, &StreamEvent::writable);
  ASSERT_TRUE(registry.poll(event));
  EXPECT_EQ(event.reset, StreamCause::kTimedOut);
  EXPECT_FALSE(event.readable || event.writable || event.done);
  EXPECT_FALSE(registry.poll(event));
  EXPECT_EQ(registry.size(), 0u);
}

TEST_F(StreamRegistryTest, AHandleIsNeverGivenTwice) {
  StreamHandle a = registry.add(stream(0));
  registry.end(a, std::nullopt);
  StreamHandle b = registry.add(stream(1));
  EXPECT_NE(b.place, a.place) << "its end was not heard yet";
  ASSERT_TRUE(registry.poll(event));
  EXPECT_TRUE(event.done);
  StreamHandle c = registry.add(stream(0));
  EXPECT_EQ(c.place, a.place);
  EXPECT_NE(c, a);
  EXPECT_FALSE(registry.find(a));
  EXPECT_EQ(registry.find(c), &stream(0));
  EXPECT_FALSE(registry.find({})) << "nor is none";
  EXPECT_FALSE(registry.find({99, 1}));
}

TEST_F(StreamRegistryTest, WhoLetsGoHearsNothingMore) {
  StreamHandle a = registry.add(stream(0));
  registry.tell(a, &StreamEvent::readable);
  registry.release(a);
  registry.end(a, StreamCause::kReset);
  EXPECT_FALSE(registry.poll(event));
  EXPECT_EQ(registry.size(), 0u);

  StreamHandle b = registry.add(stream(1));
  registry.end(b, StreamCause::kReset);
  registry.release(b);
  EXPECT_FALSE(registry.poll(event)) << "an end that was not told before";
  EXPECT_EQ(registry.size(), 0u);
}

TEST_F(StreamRegistryTest, AStreamThatBeganAndEndedUnheardIsNotSpokenOf) {
  StreamHandle a = registry.add(stream(0));
  registry.announce(a, 7);
  registry.end(a, StreamCause::kReset);
  EXPECT_FALSE(registry.poll(event));
  EXPECT_EQ(registry.size(), 0u);
}

TEST(StreamIdFilter, EachIsNewOnceWhateverTheOrder) {
  StreamIdFilter ids;
  for (uint64_t id : {8u, 0u, 4u, 2u}) {
    EXPECT_EQ(ids.check(StreamId(id)), StreamIdFilter::Verdict::kNew);
    ids.record(StreamId(id));
    EXPECT_EQ(ids.check(StreamId(id)), StreamIdFilter::Verdict::kSeen);
  }
  EXPECT_EQ(ids.check(StreamId(6)), StreamIdFilter::Verdict::kNew);
  ids.record(StreamId(8 + 2 * StreamIdFilter::kWindow));
  EXPECT_EQ(ids.check(StreamId(6)), StreamIdFilter::Verdict::kStale);
  EXPECT_EQ(ids.check(StreamId(10)), StreamIdFilter::Verdict::kNew)
      << "the bits of those before are gone";
  EXPECT_EQ(ids.check(StreamId(8)), StreamIdFilter::Verdict::kStale);
}

}  // namespace
}  // namespace braid::registry_test
