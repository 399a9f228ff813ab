// The port of a switch, with values computed by hand: 1000 bytes take 1 us at 8 Gbit/s.

#include "simnet/fabric/port.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::port_test {
namespace {

using sim::Discipline;
using sim::Parcel;
using sim::Port;
using sim::PortOptions;

constexpr uint32_t kSize = 1000;
Time at(Duration d) {
  return Time{} + d;
}
PortOptions options(Discipline discipline = Discipline::kDropTail) {
  PortOptions o;
  o.rate = 8e9;
  o.delay = 5us;
  o.discipline = discipline;
  return o;
}
Parcel parcel(uint64_t number, Ecn ecn = Ecn::kEct0) {
  Parcel p;
  p.bytes = kSize;
  p.flow = number;
  p.wire.ecn = ecn;
  return p;
}
struct Arrival {
  uint64_t number;
  Time when;
  bool ce;
  bool operator==(const Arrival&) const = default;
};
std::vector<Arrival> drain(Port& port) {
  std::vector<Arrival> all;
  for (Parcel p; port.nextDelivery() != kNever;) {
    Time when = port.nextDelivery();
    if (port.pop(p)) all.push_back({p.flow, when, p.wire.ecn == Ecn::kCe});
  }
  return all;
}

TEST(Port, SendsOneAfterTheOtherAtItsRate) {
  Port port(options(), 1);
  port.push(parcel(1), at(0us));
  port.push(parcel(2), at(0us));
  port.push(parcel(3), at(10us));
  EXPECT_EQ(drain(port),
            (std::vector<Arrival>{{1, at(6us), false}, {2, at(7us), false}, {3, at(16us), false}}));
  EXPECT_EQ(port.counters().sentBytes, 3u * kSize);
}

TEST(Port, TheOneInTransmissionDoesNotWait) {
  PortOptions o = options();
  o.packets = 2;
  Port port(o, 1);
  for (uint64_t i = 1; i <= 5; ++i) port.push(parcel(i), at(0us));
  EXPECT_EQ(port.waiting(at(0us)), 2u);
  EXPECT_EQ(port.counters().dropped, 2u);
  port.push(parcel(6), at(1us));  // the second begins now: room again
  EXPECT_EQ(port.counters().dropped, 2u);
  std::vector<uint64_t> numbers;
  for (const Arrival& a : drain(port)) numbers.push_back(a.number);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{1, 2, 3, 6}));
}

TEST(Port, ALimitInBytesCountsWhatWaits) {
  PortOptions o = options();
  o.bytes = 2 * kSize;
  Port port(o, 1);
  for (uint64_t i = 1; i <= 5; ++i) port.push(parcel(i), at(0us));
  EXPECT_EQ(drain(port).size(), 3u);
}

TEST(Port, MarksWhatFindsMoreThanTheThreshold) {
  PortOptions o = options(Discipline::kDctcp);
  o.thresholdPackets = 2;
  Port port(o, 1);
  // The first is in transmission; 2, 3, 4 find 0, 1, 2 waiting; 5 and 6 find 3 and 4.
  for (uint64_t i = 1; i <= 5; ++i) port.push(parcel(i), at(0us));
  port.push(parcel(6, Ecn::kNotEct), at(0us));
  std::vector<Arrival> all = drain(port);
  for (const Arrival& a : all) EXPECT_EQ(a.ce, a.number == 5) << a.number;
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(port.counters().marked, 1u);
}

TEST(Port, AFullQueueDropsOneAtRandomAndTheOthersMoveUp) {
  PortOptions o = options(Discipline::kDropRand);
  o.packets = 10;
  std::vector<int> survived(32);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Port port(o, seed);
    for (uint64_t i = 0; i < 12; ++i) port.push(parcel(i), at(0us));
    std::vector<Arrival> all = drain(port);
    ASSERT_EQ(all.size(), 11u);
    ASSERT_EQ(port.counters().dropped, 1u);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].when, at(6us + static_cast<int64_t>(i) * 1us));  // no gap
      ++survived[all[i].number];
    }
  }
  EXPECT_EQ(survived[0], 300);  // was in transmission
  for (size_t i = 1; i < 12; ++i) EXPECT_NEAR(survived[i], 300 * 10 / 11.0, 20) << i;
}

TEST(Port, RedMarksFromItsThresholdOnAndDropsWhatCannotBeMarked) {
  PortOptions o = options(Discipline::kRedEcn);
  o.packets = 200;
  for (Ecn ecn : {Ecn::kEct0, Ecn::kNotEct}) {
    Port port(o, 3);
    // The queue stays at 50 packets: every departure is followed by an arrival.
    for (uint64_t i = 0; i < 51; ++i) port.push(parcel(i, ecn), at(0us));
    for (int64_t i = 1; i < 5000; ++i) {
      Parcel p;
      while (port.nextDelivery() <= at(i * 1us)) port.pop(p);
      while (port.waiting(at(i * 1us)) < 50) port.push(parcel(1, ecn), at(i * 1us));
    }
    const sim::PortCounters& c = port.counters();
    uint64_t hit = ecn == Ecn::kEct0 ? c.marked : c.dropped;
    // p = 0.075 once the average is there, spread evenly: 0.14 of the packets. Without spreading it
    // would be half that.
    EXPECT_GT(hit, 500u);
    EXPECT_LT(hit, 800u);
    EXPECT_EQ(ecn == Ecn::kEct0 ? c.dropped : c.marked, 0u);
  }
}

TEST(Port, ACableLosesItsShareAndStillTakesTheTime) {
  PortOptions o = options();
  o.losses.loss = 0.2;
  Port port(o, 5);
  for (uint64_t i = 0; i < 5000; ++i) port.push(parcel(i), at(0us));
  std::vector<Arrival> all = drain(port);
  EXPECT_NEAR(static_cast<double>(all.size()), 4000, 120);
  EXPECT_EQ(port.counters().lost, 5000 - all.size());
  for (const Arrival& a : all) ASSERT_EQ(a.when, at(6us + static_cast<int64_t>(a.number) * 1us));
}

}  // namespace
}  // namespace braid::port_test
