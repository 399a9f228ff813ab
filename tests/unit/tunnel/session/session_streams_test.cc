// Streams between two sessions, byte by byte.

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/random.h"
#include "tests/unit/tunnel/session/session_pair_test.h"
#include "tunnel/stream/registry.h"
#include "tunnel/wire/frame_table.h"

namespace braid::session_streams_test {
namespace {

const StreamEnds kEnds{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};

uint8_t byteAt(uint64_t offset) {
  return static_cast<uint8_t>((offset * 2654435761u) >> 11);
}

struct SessionStreamsTest : test::SessionPairTest {
  StreamRegistry registry;
  SessionSecrets secrets;
  Random dice{1};
  double loss = 0;
  std::array<int, 2> datagrams{};  ///< of the hub, of the edge
  Duration delay{};
  std::map<uint64_t, StreamEvent> told;  ///< by place and generation
  std::vector<StreamHandle> opened;      ///< by the peer

  SessionStreamsTest() {
    options.streams.on = true;
    shared.streams = &registry;
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
  }
  ~SessionStreamsTest() override {
    edge.reset();
    hub.reset();
  }
  bool carry(Session& from, Session& to, const Route& arrival) override {
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    ++datagrams[&from == edge.get()];
    if (cut || dice.chance(loss)) return true;
    std::optional<DatagramHeader> header = readHeader(d.bytes.view());
    EXPECT_TRUE(header);
    if (std::optional<Drop> cause = to.onDatagram(*header, arrival, d.ecn, std::move(d.bytes), now))
      refused.push_back(*cause);
    return true;
  }
  void begin() {
    start(secrets);
    run(1s);
  }
  static uint64_t idOf(StreamHandle h) { return uint64_t{h.place} << 32 | h.generation; }
  void listen() {
    StreamEvent event;
    while (registry.poll(event)) {
      if (event.opened) opened.push_back(event.stream);
      StreamEvent& sum = told[idOf(event.stream)];
      sum.stream = event.stream;
      sum.opened |= event.opened;
      sum.readable |= event.readable;
      sum.writable |= event.writable;
      sum.done |= event.done;
      if (event.reset) sum.reset = event.reset;
    }
  }
  const StreamEvent& of(StreamHandle h) { return told[idOf(h)]; }

  StreamHandle open(Session& from) { return from.streams().open(kEnds, now); }
  /// Writes bytes of the test pattern at the stream's current end. Returns how many were written.
  size_t write(StreamHandle h, size_t size) {
    Stream* s = registry.find(h);
    if (!s) return 0;
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = byteAt(s->source().end() + i);
    return s->of().sendSide().write(*s, bytes, now);
  }
  /// Reads up to `most` bytes, which must match the test pattern. Returns how many were read.
  size_t read(StreamHandle h, size_t most) {
    size_t done = 0;
    for (Stream* s = registry.find(h); s && done < most; s = registry.find(h)) {
      ByteView view;
      if (s->assembly().peek({&view, 1}) == 0) break;
      view = view.first(std::min(view.size(), most - done));
      uint64_t at = s->assembly().consumed();
      for (size_t i = 0; i < view.size(); ++i)
        if (view[i] != byteAt(at + i)) ADD_FAILURE() << "wrong byte at " << at + i;
      s->of().consume(*s, view.size(), now);
      done += view.size();
    }
    return done;
  }
  void finish(StreamHandle h) {
    if (Stream* s = registry.find(h)) s->of().sendSide().finish(*s, now);
  }
  /// Transfers `size` bytes from one end to the other, which reads everything at once. Returns the
  /// duration.
  Duration bring(StreamHandle from, StreamHandle to, size_t size) {
    Time began = now;
    for (size_t written = 0, taken = 0; taken < size && now < began + 60s;) {
      written += write(from, std::min<size_t>(size - written, 65536));
      run(1ms);
      taken += read(to, SIZE_MAX);
      listen();
    }
    return now - began;
  }
  StreamHandle accepted() {
    run(2ms);
    listen();
    EXPECT_FALSE(opened.empty());
    return opened.empty() ? StreamHandle{} : opened.back();
  }
};

TEST_F(SessionStreamsTest, ARequestTravelsWithTheOpening) {
  begin();
  StreamHandle a = open(*edge);
  ASSERT_TRUE(a);
  EXPECT_EQ(write(a, 300), 300u);
  Datagram d;
  ASSERT_TRUE(edge->pollDatagram(d, now));
  std::optional<DatagramHeader> header = readHeader(d.bytes.view());
  EXPECT_FALSE(hub->onDatagram(*header, hubRoute, d.ecn, std::move(d.bytes), now));
  listen();
  ASSERT_EQ(opened.size(), 1u);
  StreamHandle b = opened[0];
  EXPECT_EQ(registry.find(b)->ends(), kEnds);
  EXPECT_TRUE(of(b).readable);
  EXPECT_EQ(read(b, 1000), 300u);
}

TEST_F(SessionStreamsTest, AStreamOfASegmentEachWayTakesAtMostADatagramMoreThanTheTwoSegments) {
  begin();
  datagrams = {};
  offer(*edge, 1, 340, {.push = true});
  run(50ms);
  offer(*hub, 1, 1040, {.push = true});
  run(200ms);
  const std::array<int, 2> packets = std::exchange(datagrams, {});
  StreamHandle a = open(*edge);
  write(a, 300);
  run(50ms);
  StreamHandle b = accepted();
  EXPECT_EQ(read(b, 300), 300u);
  write(b, 1000);
  finish(b);
  run(50ms);
  EXPECT_EQ(read(a, 1000), 1000u);
  finish(a);
  run(200ms);
  listen();
  EXPECT_TRUE(of(a).done && of(b).done);
  for (int side : {0, 1}) EXPECT_LE(datagrams[side], packets[side] + 1) << (side ? "edge" : "hub");
}

// No Nagle algorithm: a write does not wait for earlier data.
TEST_F(SessionStreamsTest, EachSmallWriteLeavesAtOnce) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 1);
  StreamHandle b = accepted();
  run(50ms);
  read(b, SIZE_MAX);
  for (int i = 1; i <= 50; ++i) {
    ASSERT_EQ(write(a, 30), 30u);
    Datagram d;
    size_t found = 0;
    while (edge->pollDatagram(d, now)) {
      std::optional<DatagramHeader> header = readHeader(d.bytes.view());
      ASSERT_TRUE(header);
      EXPECT_FALSE(hub->onDatagram(*header, hubRoute, d.ecn, std::move(d.bytes), now));
      ++found;
    }
    EXPECT_GE(found, 1u);
    EXPECT_EQ(read(b, SIZE_MAX), 30u) << "write " << i;
    now += 100us;  // no datagram of the hub, and so no ACK, arrives
  }
}

TEST_F(SessionStreamsTest, BothDirectionsEndByThemselvesAndThenAllIsDone) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 1000);
  finish(a);
  StreamHandle b = accepted();
  EXPECT_EQ(read(b, 5000), 1000u);
  EXPECT_TRUE(registry.find(b)->assembly().isAtEnd());
  run(50ms);
  listen();
  EXPECT_FALSE(of(a).done);
  bring(b, a, 50000);
  EXPECT_EQ(registry.find(a)->assembly().consumed(), 50000u);
  finish(b);
  run(50ms);
  read(a, SIZE_MAX);
  run(50ms);
  listen();
  EXPECT_TRUE(of(a).done);
  EXPECT_TRUE(of(b).done);
  EXPECT_FALSE(registry.find(a));
  EXPECT_FALSE(registry.find(b));
  EXPECT_EQ(edge->streams().size() + hub->streams().size(), 0u);
  EXPECT_EQ(registry.size(), 0u);
}

TEST_F(SessionStreamsTest, AStreamIsOpenedByEitherSide) {
  begin();
  StreamHandle a = open(*hub);
  ASSERT_TRUE(a);
  EXPECT_EQ(registry.find(a)->id(), StreamId(1));
  write(a, 10);
  StreamHandle b = accepted();
  EXPECT_EQ(read(b, 100), 10u);
}

// Found by review: after 100 KB the end of the stream did not end the burst, so its protection
// waited for a pause.
TEST_F(SessionStreamsTest, TheEndOfALongStreamIsKnownToItsProtectionAtOnce) {
  begin();
  StreamHandle a = open(*edge);
  ASSERT_TRUE(write(a, 1000));
  StreamHandle b = accepted();
  size_t written = 0;
  for (int turn = 0; turn < 2000 && written < 150'000; ++turn) {
    written += write(a, 20'000);
    run(1ms);
    read(b, SIZE_MAX);
  }
  ASSERT_GE(written, 150'000u);
  ASSERT_GT(write(a, 3000), 0u);
  ASSERT_TRUE(registry.find(a));
  EXPECT_FALSE(registry.find(a)->burst.ended());
  finish(a);
  EXPECT_TRUE(registry.find(a)->burst.ended());
}

TEST_F(SessionStreamsTest, MegabytesOverALossyPathAreWhole) {
  begin();
  loss = 0.05;
  StreamHandle a = open(*edge);
  write(a, 1);
  StreamHandle b = accepted();
  while (opened.empty()) b = accepted();
  bring(a, b, 3'000'000);
  EXPECT_EQ(registry.find(b)->assembly().consumed(), 3'000'001u);
  finish(a);
  finish(b);
  run(2s);
  read(a, 1);
  read(b, 1);
  run(1s);
  listen();
  EXPECT_TRUE(of(a).done && of(b).done);
  EXPECT_EQ(pool.quota(PacketUse::kHeld).used(), 0u);
  EXPECT_EQ(pool.quota(PacketUse::kSent).used(), 0u);
  EXPECT_EQ(pool.quota(PacketUse::kQueued).used(), 0u);
}

TEST_F(SessionStreamsTest, AReaderThatDoesNotReadIsSentItsCreditAndNoMore) {
  begin();
  StreamHandle a = open(*edge);
  size_t written = 0;
  for (int i = 0; i < 500; ++i) {
    written += write(a, 65536);
    run(1ms);
  }
  StreamHandle b = accepted();
  EXPECT_EQ(written, options.streams.firstUpload);
  EXPECT_EQ(registry.find(b)->assembly().readable(), written);
  EXPECT_EQ(read(b, SIZE_MAX), written);
  run(5ms);
  listen();
  EXPECT_TRUE(of(a).writable);
  EXPECT_GT(write(a, 65536), 0u);
}

TEST_F(SessionStreamsTest, AFastReadersWindowGrows) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 1);
  StreamHandle b = accepted();
  bring(a, b, 4'000'000);
  Stream* s = registry.find(b);
  EXPECT_GT(write(a, 1) + s->assembly().consumed(), 4'000'000u);
  // The credit that the peer has without a further update is larger than the initial one.
  size_t written = 0;
  for (int i = 0; i < 2000; ++i) {
    written += write(a, 65536);
    run(1ms);
  }
  EXPECT_GE(written, 2 * options.streams.firstUpload);
  EXPECT_LE(written, options.streams.mostCredit);
}

TEST_F(SessionStreamsTest, AResetEndsBothEndsAtOnceWithItsCause) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 5000);
  StreamHandle b = accepted();
  Stream* s = registry.find(b);
  s->of().reset(*s, StreamCause::kRefused, now);
  EXPECT_FALSE(registry.find(b));
  run(5ms);
  listen();
  EXPECT_EQ(of(a).reset, StreamCause::kRefused);
  EXPECT_FALSE(of(b).reset) << "who resets is not told";
  EXPECT_EQ(edge->streams().counts().streamsRefused, 1u);
  EXPECT_EQ(registry.size(), 0u);
  EXPECT_EQ(pool.quota(PacketUse::kSent).used(), 0u);
}

TEST_F(SessionStreamsTest, AnUnknownCodeIsAReset) {
  RecordProperty("rule", "stream.code");
  begin();
  StreamHandle a = open(*edge);
  edge->streams().onReset({registry.find(a)->id(), 4711}, now);
  listen();
  EXPECT_EQ(of(a).reset, StreamCause::kReset);
}

TEST_F(SessionStreamsTest, AResetComesThroughLosses) {
  begin();
  std::vector<StreamHandle> mine;
  for (int i = 0; i < 50; ++i) {
    mine.push_back(open(*edge));
    write(mine.back(), 100);
  }
  run(20ms);
  listen();
  ASSERT_EQ(opened.size(), 50u);
  loss = 0.5;
  for (StreamHandle h : mine) {
    Stream* s = registry.find(h);
    s->of().reset(*s, StreamCause::kReset, now);
  }
  run(20s);
  listen();
  for (StreamHandle h : opened) EXPECT_EQ(of(h).reset, StreamCause::kReset);
}

TEST_F(SessionStreamsTest, AnOpeningBehindItsResetOpensNothing) {
  RecordProperty("rule", "stream.known");
  begin();
  hub->streams().onReset({StreamId(0), 0}, now);
  StreamHandle a = open(*edge);
  ASSERT_TRUE(a);
  EXPECT_EQ(registry.find(a)->id(), StreamId(0));
  write(a, 100);
  run(20ms);
  listen();
  EXPECT_TRUE(opened.empty());
  hub->streams().onCredit({StreamId(44), 5});
  hub->streams().onReset({StreamId(45), 5}, now);
  EXPECT_EQ(hub->streams().size(), 0u);
}

TEST_F(SessionStreamsTest, ADeadPathEndsStreamsAtBothEnds) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 100);
  StreamHandle b = accepted();
  cut = true;
  for (int i = 0; i < 15; ++i) {
    write(a, 10);
    write(b, 10);
    run(1s);
  }
  listen();
  EXPECT_EQ(of(a).reset, StreamCause::kGone);
  EXPECT_EQ(of(b).reset, StreamCause::kGone);
  EXPECT_EQ(edge->streams().size(), 0u);
}

TEST_F(SessionStreamsTest, AnEndedSessionEndsItsStreams) {
  begin();
  StreamHandle a = open(*edge);
  write(a, 100000);
  edge->handBack();
  edge.reset();
  listen();
  EXPECT_EQ(of(a).reset, StreamCause::kGone);
  EXPECT_EQ(edgeEnd.handedBack(), 0u);
  edge = make(secrets, Role::kInitiator, edgeEnd);
}

TEST_F(SessionStreamsTest, NothingIsOpenedToWhoCannot) {
  options.streams.on = false;
  begin();
  EXPECT_FALSE(edge->streams().canOpen());
  EXPECT_FALSE(open(*edge));
}

struct StreamTraces : TraceSink {
  std::vector<StreamTrace> of;
  void onTrace(const TraceEvent&) override {}
  void onStream(const StreamTrace& event) override { of.push_back(event); }
};

TEST_F(SessionStreamsTest, BeginAndEndAreTracedAtBothGateways) {
  StreamTraces traces;
  shared.trace = &traces;
  begin();
  Time start = now;
  StreamHandle a = open(*edge);
  StreamHandle b = accepted();
  ASSERT_EQ(traces.of.size(), 2u);
  EXPECT_TRUE(traces.of[0].isOwn && !traces.of[1].isOwn);
  EXPECT_EQ(traces.of[0].ends, kEnds);
  EXPECT_EQ(traces.of[1].ends, kEnds);
  EXPECT_EQ(traces.of[0].time, start);
  Stream* s = registry.find(b);
  std::vector<uint8_t> bytes(500);
  s->of().sendSide().write(*s, bytes, now);
  run(20ms);
  s->of().reset(*s, StreamCause::kTimedOut, now);
  run(20ms);
  ASSERT_EQ(traces.of.size(), 4u);
  const StreamTrace &there = traces.of[2], &here = traces.of[3];
  EXPECT_TRUE(there.hasEnded && here.hasEnded);
  EXPECT_EQ(there.sentBytes, 500u);
  EXPECT_EQ(here.receivedBytes, 500u);
  EXPECT_EQ(here.cause, StreamCause::kTimedOut);
  EXPECT_GT(here.firstByte, start);
  EXPECT_EQ(there.firstByte, kNever);
  EXPECT_GE(here.time, there.time);
  EXPECT_FALSE(registry.find(a));
  shared.trace = nullptr;
}

TEST_F(SessionStreamsTest, OneMoreThanThereMayBeIsRefused) {
  RecordProperty("rule", "stream.many");
  begin();
  options.streams.most = 3;
  std::vector<StreamHandle> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(open(*edge));
  EXPECT_FALSE(open(*edge));
  run(5ms);
  StreamHandle back = open(*hub);
  EXPECT_FALSE(back);
  options.streams.most = 8;
  back = open(*hub);
  ASSERT_TRUE(back);
  options.streams.most = 3;
  run(5ms);
  listen();
  EXPECT_EQ(of(back).reset, StreamCause::kLimit);
  for (StreamHandle h : mine) EXPECT_TRUE(registry.find(h));
}

TEST_F(SessionStreamsTest, BeforeTheBoundNewConnectionsAreToStayPackets) {
  options.streams.most = 64;  // each says 32
  begin();
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(open(*edge));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(open(*hub));
  run(5ms);
  EXPECT_TRUE(edge->streams().mayIntercept());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(open(*edge)) << "those on their way find room";
    EXPECT_FALSE(edge->streams().mayIntercept());
  }
  EXPECT_FALSE(open(*edge));
  run(5ms);
  EXPECT_FALSE(open(*hub)) << "the bound is for both sides";
}

// Found by review: each opened its last one, and refused that of the other.
TEST_F(SessionStreamsTest, AtTheBoundBothSidesMayOpenAtOnceAndNoneIsRefused) {
  for (size_t most : {1, 2, 3, 15, 16, 17, 64, 1000}) {
    options.streams.most = most;
    begin();
    size_t count = 0;
    for (; edge->streams().mayIntercept() && hub->streams().mayIntercept(); ++count) {
      open(*edge);
      if (most > 1) open(*hub);  // with a limit of one, whichever side is first gets it
      if (most < 8 || count % 3 == 2)
        run(5ms);  // until here several streams are opened before the other side learns of them
    }
    EXPECT_GE(6 * count, most) << "a third of them, by two";
    run(100ms);
    listen();
    for (const auto& [id, event] : told) EXPECT_FALSE(event.reset) << most;
    edge.reset();
    hub.reset();
    listen();
    told.clear();
  }
}

TEST_F(SessionStreamsTest, WhenThePeerHasNoRoomNewConnectionsStayPacketsForAWhile) {
  begin();
  StreamHandle a = open(*edge);
  StreamHandle b = accepted();
  Stream* s = registry.find(b);
  s->of().reset(*s, StreamCause::kLimit, now);
  run(5ms);
  listen();
  EXPECT_EQ(of(a).reset, StreamCause::kLimit);
  EXPECT_FALSE(edge->streams().mayIntercept());
  EXPECT_TRUE(hub->streams().mayIntercept());
  EXPECT_TRUE(open(*edge)) << "what is on its way is tried";
  run(SessionStreams::kPauseAfterRefusal);
  EXPECT_TRUE(edge->streams().mayIntercept());
}

TEST_F(SessionStreamsTest, AThousandReadersThatDoNotReadHoldNoMoreThanTheBound) {
  RecordProperty("rule", "stream.memory");
  options.streams.heldBytes = 2 << 20;
  begin();
  std::vector<StreamHandle> mine;
  for (int i = 0; i < 1000; ++i) mine.push_back(open(*edge));
  size_t most = 0;
  for (int round = 0; round < 30; ++round) {
    for (StreamHandle h : mine) write(h, 4096);
    run(2ms);
    listen();
    most = std::max(most, hub->streams().heldBytes());
    ASSERT_LE(hub->streams().heldBytes(), options.streams.heldBytes);
  }
  EXPECT_GT(most, options.streams.heldBytes / 2);
  EXPECT_GT(hub->streams().counts().streamsLimited, 0u);
  // The streams that nobody reads do not delay one that is read.
  StreamHandle a = open(*edge);
  write(a, 1);
  run(5ms);
  listen();
  StreamHandle b = opened.back();
  bring(a, b, 300'000);
  EXPECT_EQ(registry.find(b) ? registry.find(b)->assembly().consumed() : 0, 300'001u);
}

// Out-of-order bytes of many streams must not fill the memory that the missing bytes need.
TEST_F(SessionStreamsTest, WhatComesInOrderFindsRoomHoweverMuchIsEarly) {
  options.streams.heldBytes = 64 * 2300;
  begin();
  std::vector<StreamHandle> mine;
  for (int i = 0; i < 8; ++i) mine.push_back(open(*edge));
  run(5ms);
  listen();
  ASSERT_EQ(opened.size(), 8u);
  std::vector<uint8_t> bytes(1000);
  auto offer = [&](StreamHandle h, uint64_t offset) {
    Stream* s = registry.find(h);
    StreamFrame frame;
    frame.stream = s->id();
    frame.offset = offset;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = byteAt(offset + i);
    frame.bytes = bytes;
    SessionStreams::Verdict verdict = hub->streams().admit(frame, now);
    if (verdict == SessionStreams::Verdict::kTaken)
      hub->streams().onFrame(frame, pool.copy(bytes), now);
    return verdict;
  };
  size_t refusals = 0;
  for (uint64_t offset = 1000; offset <= 60000; offset += 1000)
    for (StreamHandle h : opened) refusals += offer(h, offset) == SessionStreams::Verdict::kNoRoom;
  EXPECT_GT(refusals, 0u);
  for (StreamHandle h : opened) {
    EXPECT_EQ(offer(h, 0), SessionStreams::Verdict::kTaken);
    EXPECT_GT(read(h, SIZE_MAX), 0u);
    EXPECT_LE(hub->streams().heldBytes(), options.streams.heldBytes);
  }
  EXPECT_EQ(hub->streams().counts().streamsLimited, 0u) << "who reads is not to blame";
}

// Found by code review: a peer that sends one out-of-order byte of each of many streams makes a
// gateway hold a window and a page for each. That is more than the buffer, which alone was counted.
TEST_F(SessionStreamsTest, WhatKeepsEarlyBytesInOrderIsWithinTheBound) {
  RecordProperty("rule", "stream.memory");
  options.streams.heldBytes = 1 << 20;
  begin();
  std::vector<uint8_t> bytes(1);
  size_t each = pool.allocate().footprint() + sizeof(StreamChunk) + sizeof(StreamWindow) +
                sizeof(StreamWindow::Page);
  size_t taken = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    StreamFrame frame;
    frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
    frame.opening = StreamOpening{kEnds, 1000};
    frame.stream = StreamId(2 * i);
    frame.offset = 1;
    frame.bytes = bytes;
    if (hub->streams().admit(frame, now) != SessionStreams::Verdict::kTaken) continue;
    hub->streams().onFrame(frame, pool.copy(bytes), now);
    ++taken;
  }
  EXPECT_GT(taken, 50u);
  EXPECT_LE(taken * each, options.streams.heldBytes);
  EXPECT_EQ(hub->streams().heldBytes(), taken * each);
  EXPECT_EQ(hub->streams().counts().streamsLimited, 0u) << "early bytes end no stream";
}

// Admitted data is stored at once, so data restored from a parity cannot take its memory in
// between.
TEST_F(SessionStreamsTest, TheBoundHoldsAmidLossesAndParities) {
  RecordProperty("rule", "stream.memory");
  options.streams.heldBytes = 200'000;
  options.recovery = "cofuso";
  begin();
  loss = 0.1;
  std::vector<StreamHandle> mine;
  for (int i = 0; i < 30; ++i) mine.push_back(open(*edge));
  size_t most = 0;
  for (int round = 0; round < 600; ++round) {
    for (StreamHandle& h : mine) {
      if (!registry.find(h)) h = open(*edge);
      write(h, 1 + dice.below(3000));
    }
    run(1ms);
    listen();
    if (!opened.empty()) read(opened[dice.below(opened.size())], 5000);
    most = std::max(most, hub->streams().heldBytes());
    ASSERT_LE(hub->streams().heldBytes(), options.streams.heldBytes) << round;
  }
  EXPECT_GT(most, options.streams.heldBytes / 2);
}

TEST_F(SessionStreamsTest, BytesBeyondTheCreditAreALie) {
  RecordProperty("rule", "stream.limit");
  begin();
  StreamHandle a = open(*edge);
  StreamHandle b = accepted();
  StreamFrame frame;
  frame.stream = registry.find(b)->id();
  std::vector<uint8_t> bytes(10);
  frame.bytes = bytes;
  frame.offset = options.streams.firstUpload - 10;
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kTaken);
  ++frame.offset;
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kBad);
  static_cast<void>(a);
}

TEST_F(SessionStreamsTest, TwoEndsOfOneStreamAreALie) {
  RecordProperty("rule", "stream.final");
  begin();
  StreamHandle a = open(*edge);
  write(a, 100);
  finish(a);
  StreamHandle b = accepted();
  StreamFrame frame;
  frame.stream = registry.find(b)->id();
  frame.type = StreamFrame::kFirst | StreamFrame::kFin;
  frame.offset = 99;
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kBad);
  frame.offset = 100;
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kTaken);
}

TEST_F(SessionStreamsTest, AnOpeningFarBehindTheOthersIsAnsweredAndNotForgotten) {
  RecordProperty("rule", "stream.stale");
  begin();
  StreamFrame frame;
  frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
  frame.opening = StreamOpening{kEnds, 1000};
  frame.stream = StreamId(2 * StreamIdFilter::kWindow);
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kTaken);
  EXPECT_EQ(hub->streams().size(), 1u);
  frame.stream = StreamId(0);
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kTaken);
  EXPECT_EQ(hub->streams().size(), 1u);
  StreamResetFrame reset;
  ASSERT_TRUE(hub->streams().pollReset(reset));
  EXPECT_EQ(reset.stream, StreamId(0));
  EXPECT_EQ(reset.code, static_cast<uint64_t>(StreamCause::kGone));
  frame.stream = StreamId(2);
  EXPECT_EQ(hub->streams().admit(frame, now), SessionStreams::Verdict::kTaken);
  EXPECT_EQ(hub->streams().size(), 2u) << "it has only been overtaken";
}

TEST_F(SessionStreamsTest, RoomToReadIntoIsTheSameAsWriting) {
  begin();
  StreamHandle a = open(*edge);
  size_t filled = 0;
  for (int i = 0; i < 20; ++i) {
    Stream* s = registry.find(a);
    std::array<ByteSpan, 8> buffers;
    size_t n = s->of().sendSide().room(*s, buffers);
    size_t here = 0, want = 1 + dice.below(6000);
    for (size_t k = 0; k < n; ++k)
      for (uint8_t& byte : buffers[k].first(std::min(buffers[k].size(), want - here)))
        byte = byteAt(filled + here++);
    s->of().sendSide().commit(*s, here, now);
    filled += here;
    EXPECT_EQ(s->source().end(), filled);
    if (i % 3 == 0) run(1ms);
  }
  finish(a);
  StreamHandle b = accepted();
  EXPECT_EQ(read(b, SIZE_MAX), filled);
  EXPECT_TRUE(registry.find(b)->assembly().isAtEnd());
}

TEST_F(SessionStreamsTest, AnIdleStreamTakesLittleMemory) {
  EXPECT_LE(sizeof(Stream), 1200u) << "with its place in the table at most 1.5 KB";
}

}  // namespace
}  // namespace braid::session_streams_test
