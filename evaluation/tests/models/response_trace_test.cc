#include "evaluation/recovery/response_trace.h"

#include <gtest/gtest.h>

#include "evaluation/models/flows.h"

namespace braid::response_trace_test {
namespace {

using namespace sim;
using Kind = TraceEvent::Kind;

TraceEvent lost(uint8_t subflow, uint64_t pn) {
  return {.kind = Kind::kPacketLost, .subflow = SubflowId(subflow), .pn = PacketNumber(pn)};
}
/// A copy of packet `pn` of subflow 1, as packet 100 + pn of subflow 2.
TraceEvent copy(uint64_t pn) {
  return {.kind = Kind::kCopySent,
          .subflow = SubflowId(1),
          .on = SubflowId(2),
          .pn = PacketNumber(pn),
          .onPn = PacketNumber(100 + pn)};
}
TraceEvent parity(Kind kind, uint64_t block, uint8_t index) {
  return {.kind = kind, .index = index, .block = BlockId(block)};
}
TraceEvent decoded(uint64_t block, uint64_t pn) {
  return {.kind = Kind::kBlockDecoded,
          .subflow = SubflowId(1),
          .block = BlockId(block),
          .pn = PacketNumber(pn)};
}

TEST(FirstHit, IsTheFirstCopyOfAPacketThatWasLost) {
  FirstHit hit;
  EXPECT_FALSE(hit.number());
  for (uint64_t pn : {5u, 6u, 7u, 8u}) hit.onSender(copy(pn));
  EXPECT_FALSE(hit.number());
  hit.onSender(lost(1, 8));
  EXPECT_EQ(hit.number(), 4u);
  hit.onSender(lost(1, 6));
  EXPECT_EQ(hit.number(), 2u);
}

TEST(FirstHit, ALostCopyHitsNothing) {
  FirstHit hit;
  hit.onSender(copy(5));
  hit.onSender(lost(1, 5));
  EXPECT_EQ(hit.number(), 1u);
  hit.onSender(lost(2, 105));
  EXPECT_FALSE(hit.number());
}

TEST(FirstHit, AParityHitsWhenItIsTheLastThatIsNeeded) {
  FirstHit hit;
  hit.onSender(copy(4));
  for (uint8_t index : {0, 1, 2}) hit.onSender(parity(Kind::kParitySent, 3, index));
  for (uint8_t index : {0, 1}) hit.onReceiver(parity(Kind::kParityReceived, 3, index));
  hit.onReceiver(decoded(3, 6));
  hit.onReceiver(parity(Kind::kParityReceived, 3, 2));
  EXPECT_FALSE(hit.number()) << "it was only late";
  hit.onSender(lost(1, 6));
  EXPECT_EQ(hit.number(), 3u);
}

/// Runs a response of `packets` full packets over three subflows with windows of ten packets. One
/// of the paths loses packets.
TracedFlow trace(const char* policy, size_t packets, double loss, uint64_t seed = 1) {
  sim::Params params;
  params.policy = policy;
  Testbed testbed(seed, tunnelOptions(params, "newreno"), {.rate = loss, .burst = 1});
  testbed.network.start();
  uint16_t mss = segmentSize(*testbed.pair.server);
  return traceFlow(testbed, {.bytes = packets * uint64_t{mss}, .mss = mss});
}

TEST(TraceFlow, CountsWhatTheWindowsHaveLeft) {
  for (size_t packets : {10, 25, 29}) {
    TracedFlow flow = trace("none", packets, 0);
    EXPECT_TRUE(flow.result.complete);
    EXPECT_FALSE(flow.firstHit);
    EXPECT_NEAR(static_cast<double>(flow.chances.count[0]), static_cast<double>(30 - packets), 1)
        << packets;
    EXPECT_GE(flow.chances.count[2], 30u) << "all is acknowledged";
  }
}

// The sender's counters include only repairs of which it learnt before it detected the loss. The
// trace counts what arrived first.
TEST(TraceFlow, SeesTheHitOfALossThatProtectionMadeGood) {
  for (const char* policy : {"fuso", "cofuso"}) {
    size_t recovered = 0, hits = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      TracedFlow flow = trace(policy, 20, 0.2, seed);
      recovered += flow.result.sender.recovered > 0;
      hits += flow.firstHit.has_value();
      if (flow.firstHit) {
        EXPECT_LE(*flow.firstHit, flow.result.sender.copies + flow.result.sender.parities);
      }
    }
    EXPECT_GT(hits, 3u) << policy;
    EXPECT_GE(hits, recovered) << policy;
  }
}

}  // namespace
}  // namespace braid::response_trace_test
