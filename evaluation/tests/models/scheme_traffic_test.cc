#include "evaluation/fabric/scheme_traffic.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "evaluation/fabric/fabric_experiments.h"

namespace braid::scheme_traffic_test {
namespace {

using namespace sim;

/// Two hosts at a switch, 1 Gbit/s. `bytes`: queue limit of each port; 0: unlimited.
Topology pairOfHosts(size_t bytes = 0) {
  PortOptions port;
  port.rate = 1e9;
  port.delay = 10us;
  port.bytes = bytes;
  Topology t;
  size_t middle = t.addSwitch();
  for (int i = 0; i < 2; ++i) t.addHost(middle, port, port);
  return t;
}

/// 12.5 MB, which take 100 ms, and 1 ms later 10 KB.
std::vector<HostFlow> largeThenSmall() {
  return {{0, 1, 12'500'000, Time{}}, {0, 1, 10'000, Time{} + 1ms}};
}

Json runOn(const SchemeTrafficOptions& options, std::vector<HostFlow> flows, size_t portBytes = 0) {
  SchemeTraffic traffic(options, pairOfHosts(portBytes), std::move(flows));
  traffic.run();
  return traffic.json();
}

TEST(SchemeTraffic, OnALongLivedConnectionAFlowWaitsForTheOneBefore) {
  SchemeTrafficOptions o;
  o.scheme = "tcp";
  o.sensitive = UINT64_MAX;
  o.longLived = true;
  EXPECT_GT(runOn(o, largeThenSmall())["mean_small"], 0.098);
  o.longLived = false;
  EXPECT_LT(runOn(o, largeThenSmall())["mean_small"], 0.09);
}

TEST(SchemeTraffic, WhatIsNotSensitiveGoesByTcpOverAConnectionOfItsOwn) {
  SchemeTrafficOptions o;
  o.scheme = "tcp";
  o.longLived = true;
  o.sensitive = SchemeTraffic::kSmall;
  EXPECT_LT(runOn(o, largeThenSmall())["mean_small"], 0.09);
  o.scheme = "fuso";
  Json j = runOn(o, largeThenSmall());
  EXPECT_EQ(j["incomplete"], 0);
  EXPECT_LT(j["mean_small"], 0.09);
  EXPECT_GT(j["mean_large"], 0.099);
}

// 60 MB exceed a gateway's buffers, so a flow in a tunnel must hold data back like TCP.
TEST(SchemeTraffic, ALargeFlowByATunnelHoldsBackAndIsComplete) {
  SchemeTrafficOptions o;
  o.scheme = "fuso";
  o.sensitive = UINT64_MAX;
  for (double loss : {0.0, 0.01}) {
    o.lossy = {{0, loss}, {1, loss}, {2, loss}, {3, loss}};
    Json j = runOn(o, {{0, 1, 60'000'000, Time{}}}, 250'000);
    EXPECT_EQ(j["incomplete"], 0) << loss;
    EXPECT_GT(j["mean_large"], 0.48) << loss;
    if (loss == 0) {
      EXPECT_LT(j["mean_large"], 0.55);
    }
    EXPECT_EQ(j["lost"] > 0, loss > 0);
  }
}

// In this model nobody resends a packet that a gateway drops, so its flow would appear to be
// delayed by the network.
TEST(SchemeTraffic, ARunInWhichAGatewayHasNoRoomFails) {
  SchemeTrafficOptions o;
  o.scheme = "fuso";
  o.sensitive = UINT64_MAX;
  o.lossy = {{0, 0.01}, {1, 0.01}, {2, 0.01}, {3, 0.01}};
  std::vector<HostFlow> flow{{0, 1, 20'000'000, Time{}}};
  EXPECT_NO_THROW(runOn(o, flow));
  o.gatewayBuffers = 100;  // the client's gateway holds data that arrives after a lost packet
  EXPECT_THROW(runOn(o, flow), std::runtime_error);
}

// RepFlow uses a second connection only for small flows. Two copies of a large flow would share the
// link.
TEST(SchemeTraffic, RepFlowSendsLargeFlowsOnce) {
  SchemeTrafficOptions o;
  o.sensitive = UINT64_MAX;
  o.scheme = "tcp";
  double once = runOn(o, {{0, 1, 12'500'000, Time{}}})["mean_large"];
  o.scheme = "repflow";
  EXPECT_NEAR(runOn(o, {{0, 1, 12'500'000, Time{}}})["mean_large"], once, once / 100);
}

TEST(SchemeTraffic, ProtectionIsNotMoreThanHalfOfWhatServersSend) {
  SchemeTrafficOptions o;
  o.scheme = "fuso";
  o.sensitive = SchemeTraffic::kSmall;
  std::vector<HostFlow> small{{0, 1, 20'000, Time{}}};
  double extra = runOn(o, small)["extra_load"];
  EXPECT_GT(extra, 0.05);
  EXPECT_LT(extra, 0.5);
  o.scheme = "none";
  EXPECT_EQ(runOn(o, small)["extra_load"], 0);
}

TEST(SchemeTraffic, WhatIsNotCompleteCountsWithTheTimeSoFar) {
  SchemeTrafficOptions o;
  o.scheme = "tcp";
  o.sensitive = SchemeTraffic::kSmall;
  o.patience = 50ms;
  o.lossy = {{0, 1.0}};  // the client's requests
  Json j = runOn(o, {{0, 1, 20'000, Time{} + 1ms}});
  EXPECT_EQ(j["incomplete_small"], 1);
  EXPECT_NEAR(j["mean_small"], 0.05, 1e-3);
}

TEST(SchemeTraffic, RefusesUnknownSchemes) {
  SchemeTrafficOptions o;
  o.scheme = "carrier-pigeon";
  EXPECT_THROW(runOn(o, {}), std::runtime_error);
}

FabricParams twoRacks(const char* scheme) {
  FabricParams p;
  p.scheme = scheme;
  p.flows = 40;
  p.load = 0.5;
  return p;
}

TEST(TwoRacks, TheSchemeMattersAndNothingElse) {
  Json tcp = runTwoRacks(twoRacks("tcp")), fuso = runTwoRacks(twoRacks("fuso"));
  for (const char* same : {"flows", "small", "large"}) EXPECT_EQ(tcp[same], fuso[same]) << same;
  EXPECT_EQ(tcp["flows"], 40);
  EXPECT_GT(tcp["lost"], 0);
  EXPECT_EQ(fuso["hash"], runTwoRacks(twoRacks("fuso"))["hash"]);
  EXPECT_NE(fuso["hash"], tcp["hash"]);
}

TEST(TwoRacks, NothingIsLostWithoutTheLossyPath) {
  FabricParams p = twoRacks("fuso");
  p.loss = 0;
  Json j = runTwoRacks(p);
  EXPECT_EQ(j["lost"], 0);
  EXPECT_GE(j["p50_small"], 280e-6);
}

FabricParams mesh(const char* scheme) {
  FabricParams p;
  p.scheme = scheme;
  p.flows = 50;
  p.load = 0.3;
  return p;
}

TEST(Mesh, FlowsTakeARoundTripAtLeastAndRunAtOnce) {
  for (const char* scheme : {"tcp", "cofuso"}) {
    Json j = runMesh(mesh(scheme));
    EXPECT_EQ(j["incomplete"], 0) << scheme;
    EXPECT_EQ(j["small"], 50) << scheme;
    EXPECT_GE(j["p50_small"], 48e-3) << scheme;
    EXPECT_GT(j["lost"], 0) << scheme;
  }
}

TEST(Mesh, AFixedCodingRateChangesWhatIsSent) {
  FabricParams p = mesh("cofuso");
  Json dynamic = runMesh(p);
  p.codingRate = 0.32;
  EXPECT_NE(dynamic["hash"], runMesh(p)["hash"]);
  p.scheme = "fuso";  // does not support coding
  Json fuso = runMesh(p);
  p.codingRate = 0;
  EXPECT_EQ(fuso["hash"], runMesh(p)["hash"]);
}

TEST(Mesh, HasABoundedNumberOfConnections) {
  FabricParams p = mesh("tcp");
  p.flows = 641;
  EXPECT_THROW(runMesh(p), std::runtime_error);
}

}  // namespace
}  // namespace braid::scheme_traffic_test
