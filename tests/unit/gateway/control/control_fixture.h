#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gateway/control/control_session.h"

namespace braid {

/// A daemon with one peer, which has two subflows and two flows.
class FakeGateway : public ControlHandler {
 public:
  TunnelStatus tunnelStatus() override {
    TunnelStatus tunnel;
    tunnel.drops[static_cast<size_t>(Drop::kReplay)] = 7;
    return tunnel;
  }
  std::vector<std::string> peers() override { return names; }
  std::optional<PeerStatus> peerStatus(size_t place, size_t listed) override {
    if (place >= names.size()) return std::nullopt;
    asked = listed;
    ++told;
    PeerStatus peer;
    peer.name = names[place];
    peer.up = true;
    peer.age = 90s;
    for (unsigned id = 0; id < 2; ++id) {
      SubflowStatus subflow;
      subflow.id = id;
      subflow.uplink = subflow.path = id == 0 ? "wifi" : "lte";
      subflow.srtt = 12ms + id * 30ms;
      subflow.pacingRate = id == 0 ? 1.25e6 : std::numeric_limits<double>::infinity();
      peer.subflows.push_back(subflow);
    }
    peer.flowCount = flows;
    for (uint64_t i = 0; i < std::min<uint64_t>(flows, listed); ++i) {
      FlowStatus flow;
      flow.name = "tcp 10.0.0.1:443 > 10.0.0.2:" + std::to_string(i);
      flow.bytes = (flows - i) * 100;
      peer.flows.push_back(flow);
    }
    return peer;
  }
  GatewayStatus gatewayStatus() override {
    GatewayStatus gateway;
    gateway.version = "1.2.3";
    gateway.device = device;
    gateway.uplinks.push_back({"wifi", "wlan0", true, {"192.0.2.7"}, ""});
    return gateway;
  }
  std::string reload() override {
    ++reloads;
    return reloadProblem;
  }
  std::string trace(UniqueFd file) override {
    traced = std::move(file);
    ++traces;
    return traceProblem;
  }
  InviteResult invite(const InviteRequest& request) override {
    invited = request;
    ++invites;
    return inviteResult;
  }

  const History& history() override { return past; }
  std::string startTest(const std::string& peer, const MeasureRequest& request) override {
    tested = peer + " " + request.path;
    return peer == "hub" ? "" : "there is no peer " + peer;
  }
  void stopTest() override { tested.clear(); }
  std::pair<MeasureStatus, PeerStatus> testStatus() override {
    return {{"hub", "wifi", true, 1000, 2s}, *peerStatus(0, 0)};
  }
  uint64_t drain(Duration time) override {
    drained = time;
    return 7;
  }
  /// The complete status, like Tunnel::status().
  TunnelStatus whole(size_t listed = 0) {
    TunnelStatus tunnel = tunnelStatus();
    for (size_t i = 0; i < names.size(); ++i)
      tunnel.peers.push_back(*peerStatus(i, flowShare(listed, names.size())));
    return tunnel;
  }

  History past;
  std::string tested;
  Duration drained{};
  uint64_t flows = 2;
  std::vector<std::string> names{"hub"};
  size_t asked = 0;  ///< number of flows per peer in the last request
  size_t told = 0;   ///< peers
  std::string device = "braid0";
  std::string reloadProblem;
  int reloads = 0;
  UniqueFd traced;
  std::string traceProblem;
  int traces = 0;
  InviteRequest invited;
  InviteResult inviteResult{.problem = {}, .line = "a line", .note = {}};
  int invites = 0;
};

}  // namespace braid
