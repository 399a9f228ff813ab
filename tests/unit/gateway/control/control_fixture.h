#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "gateway/control/control_session.h"

namespace braid {

/// A daemon with one peer, two subflows and two flows.
class FakeGateway : public ControlHandler {
 public:
  TunnelStatus tunnelStatus(size_t listed) override {
    asked = listed;
    TunnelStatus tunnel;
    PeerStatus peer;
    peer.name = "hub";
    peer.up = true;
    peer.age = 90s;
    for (unsigned id = 0; id < 2; ++id) {
      SubflowStatus subflow;
      subflow.id = id;
      subflow.uplink = id == 0 ? "wifi" : "lte";
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
    tunnel.peers.push_back(peer);
    tunnel.drops[static_cast<size_t>(Drop::kReplay)] = 7;
    return tunnel;
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
    return {{"hub", "wifi", true, 1000, 2s}, tunnelStatus(0).peers[0]};
  }

  History past;
  std::string tested;
  uint64_t flows = 2;
  size_t asked = 0;  ///< how many flows tunnelStatus() was last to list
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
