// The packet lane's record of a flow's bursts: small (a request, or a frame of a call) or bulk.

#include "tunnel/queue/flow_kind.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/queue/packet_queue_bench.h"

namespace braid::flow_burst_test {
namespace {

using Bench = PacketLaneBench;

TEST(FlowBurst, IsWhatComesWithoutAPause) {
  Bench b;
  b.in(1, 1000, at(1s));
  b.in(1, 500, at(1s));
  b.outs(2, at(1s));
  b.in(1, 100, at(1s) + FlowBurst::kGap - 1ns);
  EXPECT_EQ(b.flow(1)->burst.bytes(), 1600u);
  b.outs(1, at(1s));
  b.in(1, 100, at(1s) + 2 * FlowBurst::kGap - 1ns);
  EXPECT_EQ(b.flow(1)->burst.bytes(), 100u) << "a new one";
}

TEST(FlowBurst, WhatWaitsIsOfIt) {
  Bench b;
  b.in(1, 1000, at(1s));
  b.in(1, 1000, at(2s));
  EXPECT_EQ(b.flow(1)->burst.bytes(), 2000u)
      << "the sender has not been quiet: its packet waits here";
}

TEST(FlowBurst, WhoIsSmall) {
  Bench b;
  for (int i = 0; i < 6; ++i) b.in(1);
  EXPECT_TRUE(b.flow(1)->burst.isSmall());
  b.in(1, 1);
  EXPECT_FALSE(b.flow(1)->burst.isSmall());
  b.outs(7);
  b.in(1, 100, at(1s) + FlowBurst::kGap);
  EXPECT_TRUE(b.flow(1)->burst.isSmall()) << "it was quiet";
}

TEST(FlowBurst, FinEndsAFlowAndPushAShortBurst) {
  Bench b;
  auto in = [&](uint16_t n, size_t size, PacketHint hint) {
    b.in(n, size, at(1s), true, false, hint);
    return b.flow(n)->burst.ended();
  };
  EXPECT_FALSE(in(1, 1000, {}));
  EXPECT_TRUE(in(1, 1000, {.push = true}));
  EXPECT_FALSE(in(1, 1000, {})) << "its last packet says";
  EXPECT_TRUE(in(1, 1000, {.fin = true}));
  size_t sent = 0;
  for (; sent + 1000 <= FlowBurst::kShort; sent += 1000)
    EXPECT_TRUE(in(2, 1000, {.push = true})) << sent;
  EXPECT_FALSE(in(2, 1000, {.push = true})) << "a bulk sender pushes often";
  EXPECT_TRUE(in(2, 1000, {.fin = true}));
}

TEST(FlowBurst, EachTimelyDatagramOfAShortBurstMayBeItsLast) {
  Bench b;
  auto in = [&](bool reliable, size_t size, Time t) {
    auto n = static_cast<uint16_t>(reliable ? 1 : 2);
    b.in(n, size, t, reliable);
    b.outs(2, t);
    return b.flow(n)->burst.ended();
  };
  EXPECT_FALSE(in(true, 100, at(1s))) << "TCP says so itself";
  size_t sent = 0;
  for (; sent + 1000 <= FlowBurst::kShort; sent += 1000)
    EXPECT_TRUE(in(false, 1000, at(1s))) << sent;
  EXPECT_FALSE(in(false, 1000, at(1s))) << "a stream";
  EXPECT_TRUE(in(false, 1000, at(1s) + FlowBurst::kGap)) << "the frame of a call";
}

TEST(FlowBurst, ACallIsSmallHoweverDenseItsDatagramsAre) {
  Bench b;
  Time t = at(1s);
  auto everyTwoMilliseconds = [&](size_t size) {
    t += 2ms;
    b.in(1, size, t, false);
    b.outs(2, t);
    return b.flow(1)->burst.isSmall();
  };
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(everyTwoMilliseconds(300)) << "1.2 Mbit/s " << i;
  bool isSmall = true;
  for (int i = 0; i < 100; ++i) isSmall = everyTwoMilliseconds(600);
  EXPECT_FALSE(isSmall) << "2.4 Mbit/s";
}

TEST(FlowBurst, ALoneOrderedDatagramEndsItsFlow) {
  Bench b;
  auto in = [&](Time t) {
    b.in(1, 100, t, false, false, {.sign = DatagramSign::kOrdered});
    b.outs(2, t);
    return b.flow(1)->burst.ended();
  };
  EXPECT_TRUE(in(at(1s)));
  EXPECT_FALSE(in(at(1s) + FlowBurst::kGap - 1ns)) << "what is lost of a stream is sent again";
  EXPECT_TRUE(in(at(2s)));
}

TEST(FlowBurst, AFlowThatTakesOverBeginsANewOne) {
  Bench b({}, {.maxFlows = 1});
  b.in(1, 1000);
  b.outs(2);
  b.in(2, 100);
  EXPECT_EQ(b.flow(2)->burst.bytes(), 100u);
}

}  // namespace
}  // namespace braid::flow_burst_test
