#include "gateway/control/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/unit/gateway/control/control_fixture.h"

namespace braid::status_json_test {
namespace {

using nlohmann::json;

TEST(StatusJson, SubflowCarriesEveryFigure) {
  SubflowStatus s;
  s.id = 3, s.uplink = "lte", s.path = "mobile", s.observed = "198.51.100.9:4",
  s.local = "10.0.0.1:5", s.remote = "192.0.2.1:4433", s.state = "active", s.deadWay = "in";
  s.srtt = 12500us, s.rttvar = 2ms, s.minRtt = 10ms, s.queueDelay = 2500us, s.queueOut = 1500us,
  s.window = 1, s.inFlight = 2, s.pacingRate = 3, s.deliveryRate = 4, s.deliveredBytes = 21;
  s.sentPackets = 5, s.sentBytes = 6, s.receivedPackets = 7, s.receivedBytes = 8, s.lostPackets = 9;
  s.spuriousLosses = 10, s.retransmittedBytes = 11, s.ecn = "capable", s.ceMarks = 12, s.mtu = 1400;
  s.preference = {PathUse::kBackup, 3, 1, 625'000}, s.resting = s.suppressed = true;
  s.copies = 13, s.parities = 14, s.protectionBytes = 15, s.protectedPackets = 16, s.recovered = 17;
  s.decoded = 18, s.useless = 19, s.lossRate = 0.25, s.lossMetric = 0.5, s.burst = 1.5;
  s.timeouts = 20, s.blips = 22, s.down = 1500ms;
  EXPECT_EQ(
      subflowJson(s),
      json::parse(
          R"({"id":3,"uplink":"lte","path":"mobile","local":"10.0.0.1:5","remote":"192.0.2.1:4433","public_address":"198.51.100.9:4",
    "state":"active","dead_direction":"in","srtt_ms":12.5,"rttvar_ms":2.0,"min_rtt_ms":10.0,"queue_delay_ms":2.5,"queue_out_ms":1.5,"queue_in_ms":null,"window_bytes":1,"in_flight_bytes":2,
    "pacing_bytes_per_s":3.0,"delivery_bytes_per_s":4.0,"delivered_bytes":21,"sent_packets":5,"sent_bytes":6,"received_packets":7,
    "received_bytes":8,"lost_packets":9,"spurious_losses":10,"retransmitted_bytes":11,"ecn":"capable","ce_marks":12,"use":"backup","weight":3,"limit_bytes_per_s":625000,
    "resting":true,"suppressed":true,"mtu_bytes":1400,
    "copies":13,"parities":14,"protection_bytes":15,"protected_packets":16,"recovered_packets":17,
    "decoded_packets":18,"useless_packets":19,"loss_estimate":0.25,"loss_metric":0.5,"burst_packets":1.5,"timeouts":20,
    "blips":22,"down_s":1.5})"));
}

TEST(StatusJson, PeerCarriesEveryFigure) {
  PeerStatus p;
  p.name = "hub", p.pin = "sha256:x", p.up = true, p.age = 1500ms, p.keyEpoch = 2,
  p.cipher = "aes-128-gcm";
  p.innerMtu = 1400, p.innerSentPackets = 3, p.innerSentBytes = 4, p.innerReceivedPackets = 5;
  p.innerReceivedBytes = 6, p.retransmitted = 7, p.heldPackets = 8, p.heldBytes = 9;
  p.recovery = "cofuso", p.blocks = 10, p.paritiesReceived = 11, p.blocksDecoded = 12,
  p.restored = 13;
  p.evicted = 14, p.suppressions = 15, p.wholeParities = 16, p.version = 17;
  p.orderMemory = 19, p.decodeMemory = 20;
  p.subflows.resize(2), p.flowCount = 3;
  p.keyAge = 500ms, p.keyGeneration = 17, p.failedRenewals = 18;
  p.group = "hubs", p.inUse = false, p.refusal = "keys";
  p.streamCount = 21, p.streamsHeldBytes = 22, p.streamsOpened = 23, p.streamsAccepted = 24,
  p.streamsDone = 25;
  p.streamSentBytes = 26, p.streamReceivedBytes = 27, p.streamsReset = 28, p.streamsRefused = 29;
  p.streamsUnreachable = 30, p.streamsTimedOut = 31, p.streamsLimited = 32, p.streamsGone = 33;
  p.retransmitDelay = 38.5, p.undelivered = 39;
  p.streamsForbidden = 34, p.streamsTurnedAway = 35, p.sentBytes = 36, p.receivedBytes = 37;
  EXPECT_EQ(peerJson(p),
            json::parse(R"({"name":"hub","pin":"sha256:x","up":true,"age_s":1.5,"key_epoch":2,
    "cipher":"aes-128-gcm","inner_mtu_bytes":1400,"inner_sent_packets":3,"inner_sent_bytes":4,
    "inner_received_packets":5,"inner_received_bytes":6,"retransmitted":7,"held_packets":8,"held_bytes":9,
    "subflow_count":2,"flow_count":3,"recovery":"cofuso","blocks":10,"parities_received":11,
    "blocks_decoded":12,"packets_decoded":13,"blocks_evicted":14,"suppressions":15,"whole_parities":16,
    "protocol_version":17,"key_age_s":0.5,"key_generation":17,"failed_rekeys":18,
    "order_memory_bytes":19,"decode_memory_bytes":20,"stream_count":21,"streams_held_bytes":22,"streams_opened":23,
    "streams_accepted":24,"streams_done":25,"streams_sent_bytes":26,"streams_received_bytes":27,"streams_reset":28,
    "streams_refused":29,"streams_unreachable":30,"streams_timed_out":31,"streams_limited":32,"streams_session_lost":33,
     "streams_forbidden":34,"streams_rejected":35,"sent_bytes":36,"received_bytes":37,"group":"hubs","in_use":false,"refusal":"keys",
     "retransmit_delay_ms":38.5,"undelivered":39})"));
}

TEST(StatusJson, FlowAndGateway) {
  EXPECT_EQ(
      flowJson({{1, 2, 4, 5}, "udp", "timely", 3, 6}),
      json::parse(
          R"({"name":"udp","delivery":"timely","packets":1,"bytes":2,"queued_bytes":3,"drops":4,"marks":5,"idle_s":0.0,
                    "unacked_packets":6})"));
  json gateway = gatewayJson(FakeGateway().gatewayStatus());
  EXPECT_EQ(
      gateway["uplinks"][0],
      json::parse(
          R"({"name":"wifi","interface":"wlan0","up":true,"addresses":["192.0.2.7"],"gateway":null,
                    "use":"normal","weight":1,"up_limit_bytes_per_s":0,"down_limit_bytes_per_s":0,
                    "metered":null,"resolvers":[],"resolvers_from":null,"portal":null,"portal_open":null,
                    "carried":null,"availability":null})"));
  GatewayStatus preferring;
  preferring.uplinks = {
      {"lte", "wwan0", true, {}, "", "metered", 3, 625'000, 2'500'000, {{{5, 10, true}, 99}}}};
  json uplink = gatewayJson(preferring)["uplinks"][0];
  EXPECT_EQ(uplink["use"], "metered");
  EXPECT_EQ(uplink["up_limit_bytes_per_s"], 625'000);
  EXPECT_EQ(uplink["down_limit_bytes_per_s"], 2'500'000);
  EXPECT_EQ(uplink["metered"],
            json::parse(R"({"used_bytes":5,"cap_bytes":10,"closed":true,"until_unix_s":99})"));
  gateway.erase("uplinks");
  EXPECT_EQ(
      gateway,
      json::parse(R"({"version":"1.2.3","config":"","pin":"","device":"braid0","mode":"","pid":0,
    "uptime_s":0.0,"device_mtu_bytes":0,"log_lines_lost":0,"unconfined":[],"listen":[]})"));
}

TEST(StatusJson, HostDropsCarryEveryFigure) {
  HostDrops d;
  d.overflowed = 1, d.truncated = 2, d.noBuffer = 3, d.queueDrops = 4, d.sendErrors = 5,
  d.tooBig = 6;
  d.socketClosed = 7, d.readTooBig = 8, d.readNoBuffer = 9, d.writeFull = 10, d.writeErrors = 11;
  GatewayStatus gateway;
  gateway.drops = d;
  EXPECT_EQ(statusJson(gateway, {})["host_drops"],
            json::parse(R"({"socket_overflow":1,"socket_truncated":2,"socket_no_buffer":3,
    "socket_queue_full":4,"socket_send_failed":5,"socket_too_big":6,"socket_closed":7,
    "device_read_truncated":8,"device_read_no_buffer":9,"device_write_full":10,"device_write_failed":11})"));
}

TEST(StatusJson, HostTrafficCarriesEveryFigure) {
  GatewayStatus gateway;
  gateway.traffic = {{1, 2, 3, 4, 5, 6, 7, 15, 16, 17}, {8, 9, 10, 11, 12, 13, 14, 18}};
  EXPECT_EQ(statusJson(gateway, {})["host_traffic"],
            json::parse(
                R"({"socket_received_packets":1,"socket_received_bytes":2,"socket_receive_errors":3,
    "socket_sent_packets":4,"socket_sent_bytes":5,"socket_blocked":6,"socket_no_memory":7,
    "socket_runs_refused":15,"socket_merged_damaged":16,"socket_merging_stopped":17,
    "device_read_packets":8,"device_read_bytes":9,"device_read_errors":10,"device_written_packets":11,
    "device_written_bytes":12,"device_reads":13,"device_writes":14,"device_runs_refused":18})"));
}

TEST(StatusJson, MetricOfASubflowThatLosesEverythingIsNull) {
  SubflowStatus s;
  s.lossMetric = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(subflowJson(s)["loss_metric"].is_null());
}

TEST(StatusJson, RecoveryHasOptionsTimesAndTrace) {
  GatewayStatus gateway;
  gateway.recovery.kMax = 64, gateway.recovery.mMax = 3;
  gateway.recovery.decodeTime[0] = 12500ns;
  gateway.recovery.decodeTime[1] = 40us;
  gateway.trace = {true, 5, 2, "No space left on device"};
  json answer = recoveryJson(gateway, FakeGateway().whole());
  EXPECT_EQ(answer["k_max"], 64);
  EXPECT_EQ(answer["m_max"], 3);
  EXPECT_EQ(answer["decode_us"], json::parse("[12.5,40.0,null]")) << "one was not measured";
  EXPECT_EQ(
      answer["trace"],
      json::parse(R"({"on":true,"written":5,"dropped":2,"problem":"No space left on device"})"));
  EXPECT_TRUE(recoveryJson({}, {})["trace"]["problem"].is_null());
  EXPECT_EQ(answer["peers"][0]["blocks_decoded"], 0);
  EXPECT_FALSE(answer["peers"][0].contains("age_s")) << "of the peer only what recovery did";
  EXPECT_EQ(answer["peers"][0]["subflows"].size(), 2u);
  EXPECT_EQ(answer["peers"][0]["name"], "hub");
}

TEST(StatusJson, LargestMOfAPeerFollowsItsSmallestRtt) {
  GatewayStatus gateway;
  gateway.recovery.mMax = 3;
  gateway.recovery.decodeTime = {1ms, 2ms, 3ms};
  PeerStatus peer;
  peer.subflows.resize(3);
  peer.subflows[0].state = "active", peer.subflows[0].srtt = 40ms;
  peer.subflows[1].state = "active", peer.subflows[1].srtt = 10ms;
  peer.subflows[2].state = "failed", peer.subflows[2].srtt = 1ms;
  TunnelStatus tunnel;
  tunnel.peers = {peer, PeerStatus{}};
  json answer = recoveryJson(gateway, tunnel);
  EXPECT_EQ(answer["peers"][0]["m_max"], 2) << "3 ms are more than a quarter of 10 ms";
  EXPECT_EQ(answer["peers"][0]["m_max_decode_us"], 2000.0);
  EXPECT_TRUE(answer["peers"][1]["m_max"].is_null()) << "no RTT yet";
}

TEST(StatusJson, EndlessRateIsNull) {
  json paths = pathsJson(FakeGateway().whole());
  EXPECT_EQ(paths["peers"][0]["subflows"][0]["pacing_bytes_per_s"], 1.25e6);
  EXPECT_TRUE(paths["peers"][0]["subflows"][1]["pacing_bytes_per_s"].is_null());
}

TEST(StatusJson, StatusHasAllDropsAndNoFlows) {
  FakeGateway daemon;
  json status = statusJson(daemon.gatewayStatus(), daemon.whole());
  EXPECT_EQ(status["drops"].size(), kDropCount) << "each cause has a name of its own";
  EXPECT_EQ(status["drops"][dropName(Drop::kReplay)], 7);
  EXPECT_EQ(status["peers"][0]["subflows"].size(), 2u);
  EXPECT_FALSE(status["peers"][0].contains("flows"));
  std::set<std::string> keys;
  for (const auto& [key, value] : status.items()) keys.insert(key);
  EXPECT_EQ(keys,
            (std::set<std::string>{"peers", "gateway", "host_drops", "host_traffic", "drops",
                                   "ack_shim", "buffers_in_use", "buffers_limit", "buffers_queued",
                                   "buffers_sent", "buffers_held", "memory_bytes",
                                   "memory_limit_bytes", "handshakes", "streams"}));
}

TEST(StatusJson, TheAckShimHasAllItsActuators) {
  ShimStatus shim;
  shim.on = true;
  shim.flows = 7;
  shim.counters[Actuator::kHole] = {3, 2, 1};
  shim.counters.helpless = 4;
  json j = shimJson(shim);
  ASSERT_EQ(j["actuators"].size(), kActuators);
  EXPECT_EQ(j["actuators"][2], json::parse(R"({"name":"hole","fired":3,"useful":2,"spurious":1})"));
  j.erase("actuators");
  EXPECT_EQ(
      j, json::parse(
             R"({"on":true,"flows":7,"cached_packets":0,"acks_sent":0,"acks_dropped":0,"silent":0,
    "helpless":4,"foreign_packets":0,"half_open_flows":0,"proven_flows":0,"table_full":0,"cache_full":0,
    "no_buffer":0})"));
  EXPECT_EQ(statusJson({}, {})["ack_shim"]["on"], false);
}

TEST(StatusJson, FlowsTellsHowManyThereAreBesideThoseListed) {
  FakeGateway daemon;
  daemon.flows = 7;
  json peer = flowsJson(daemon.whole(5))["peers"][0];
  EXPECT_EQ(peer["flow_count"], 7);
  ASSERT_EQ(peer["flows"].size(), 5u);
  EXPECT_EQ(peer["flows"].front()["bytes"], 700);
}

}  // namespace
}  // namespace braid::status_json_test
