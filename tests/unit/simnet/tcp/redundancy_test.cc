// Redundancy that is sent before any loss is known: everything twice, or an XOR of each time bin.

#include <gtest/gtest.h>

#include "simnet/tcp/rivals.h"
#include "tests/unit/simnet/tcp/lab.h"

namespace braid::sim::tcp::redundancy_test {
namespace {

const LinkOptions kWire{.delay = 10ms};
constexpr uint64_t kCodedMss = 1440;

Lab ready(const char* recovery) {
  return Lab({.tcp = recoveryOptions(recovery), .forth = kWire, .back = kWire});
}

/// Numbers of data packets in sending order, including XORs.
std::set<uint64_t> numbers(std::initializer_list<uint64_t> n) {
  return n;
}

TEST(TcpRedundancy, ProactiveSendsEachSegmentTwice) {
  Lab lab = ready("proactive");
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.loseData = numbers({1, 4, 19});  // never both packets of a pair
  lab.write(10 * 1448);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.arrived[0].end - begin, 10ms);
  EXPECT_EQ(lab.data().size(), 20u);
  EXPECT_EQ(lab.stats().retransmitted, 0u);
  EXPECT_EQ(lab.stats().fastRecoveries + lab.stats().timeouts, 0u)
      << "duplicates are no sign of loss";
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(lab.data()[i].offset, i / 2 * 1448);
}

TEST(TcpRedundancy, AnXorFollowsABinAndAQuarterOfARoundTrip) {
  Lab lab = ready("tcp-ir");
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(5 * kCodedMss);
  lab.net.run(9ms);
  EXPECT_EQ(lab.data().size(), 5u);
  lab.net.run(100ms);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 6u);
  EXPECT_EQ(data[5].at - begin, 10ms) << "RTT/4 for the bin, RTT/4 to wait";
  EXPECT_EQ(data[5].offset, 0u);
  EXPECT_EQ(data[5].tcp.payloadLength, kCodedMss);
  EXPECT_EQ(lab.server().wrongBytes(), 0u);
  EXPECT_EQ(lab.stats().retransmitted, 0u);
}

TEST(TcpRedundancy, ABinOfSixteenIsFull) {
  Options tcp = recoveryOptions("tcp-ir");
  tcp.initialWindow = 40;
  Lab lab({.tcp = tcp, .forth = kWire, .back = kWire});
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(40 * kCodedMss);
  lab.net.run(100ms);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 43u);
  EXPECT_EQ(data[40].at - begin, 5ms);
  EXPECT_EQ(data[40].offset, 0u);
  EXPECT_EQ(data[41].at - begin, 5ms);
  EXPECT_EQ(data[41].offset, 16 * kCodedMss);
  EXPECT_EQ(data[42].at - begin, 10ms) << "the third bin closes by its time";
  EXPECT_EQ(data[42].offset, 32 * kCodedMss);
}

TEST(TcpRedundancy, AnXorFillsOneGapWhereverItIs) {
  for (uint64_t lost = 1; lost <= 5; ++lost) {
    Lab lab = ready("tcp-ir");
    lab.net.run(50ms);
    lab.loseData = {lost};
    Time begin = lab.net.now();
    lab.write(4 * kCodedMss + 700);
    lab.net.run(1s);
    ASSERT_EQ(lab.arrived.size(), 1u);
    Duration taken = lab.arrived[0].end - begin;
    EXPECT_EQ(taken, 20ms) << "the XOR leaves after half a round trip, before any repair";
    EXPECT_EQ(lab.stats().timeouts, 0u);
    EXPECT_EQ(lab.server().wrongBytes(), 0u);
    EXPECT_EQ(lab.client().sender().flight(), 0u);
  }
}

TEST(TcpRedundancy, AFilledGapCostsAWindowReduction) {
  Lab lab = ready("tcp-ir");
  lab.net.run(50ms);
  lab.loseData = {10};
  lab.write(10 * kCodedMss);
  lab.net.run(100ms);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().marks, 1u);
  EXPECT_EQ(lab.stats().retransmitted, 0u);
  double window = lab.client().sender().cwnd();
  EXPECT_LT(window, 10.0 * kCodedMss);
  lab.write(10 * kCodedMss);
  lab.net.run(100ms);
  EXPECT_EQ(lab.stats().marks, 1u) << "told by CWR, the receiver no longer says so";
}

TEST(TcpRedundancy, WhatAnXorCannotFillIsRepairedAtOnce) {
  Lab lab = ready("tcp-ir");
  lab.net.run(50ms);
  lab.loseData = {8, 9, 10};
  Time begin = lab.net.now();
  lab.write(10 * kCodedMss);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().timeouts, 0u);
  EXPECT_EQ(lab.stats().fastRecoveries, 1u);
  // The XOR 10 ms after the data, the report, two repairs, and after a round trip the third.
  EXPECT_EQ(lab.arrived[0].end - begin, 10ms + 10ms + 10ms + 10ms + 20ms);
}

TEST(TcpRedundancy, EveryRivalGetsThroughLoss) {
  for (const char* recovery : recoveryNames()) {
    for (const char* control : controlNames()) {
      Options tcp = recoveryOptions(recovery);
      tcp.control = controlOf(control);
      LinkOptions forth = kWire;
      forth.loss = 0.08;
      forth.reorder = 0.05;
      forth.reorderDelay = 3ms;
      Lab lab({.tcp = tcp, .forth = forth, .back = {.delay = 10ms, .loss = 0.05}, .seed = 3});
      for (int i = 0; i < 10; ++i) lab.write(20'000);
      lab.net.run(200s);
      EXPECT_EQ(lab.arrived.size(), 10u) << recovery;
      EXPECT_EQ(lab.server().wrongBytes(), 0u) << recovery;
    }
  }
  EXPECT_THROW(recoveryOptions("none"), std::invalid_argument);
  EXPECT_THROW(controlOf("none"), std::invalid_argument);
}

}  // namespace
}  // namespace braid::sim::tcp::redundancy_test
