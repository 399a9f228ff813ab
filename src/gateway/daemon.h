#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/control/control.h"
#include "gateway/gateway.h"
#include "host/linux/linux_host.h"
#include "host/linux/loop.h"

namespace braid {

/// The process of one gateway on this machine: event loop, control socket, signals and the
/// connection to the service manager.
class Daemon : private ControlHandler {
 public:
  /// Sets everything up, and confines this process (confinement.h). `changeUser`: one of root
  /// becomes another user. Throws std::runtime_error with a remedy; the host's settings are then
  /// restored.
  Daemon(Config config, LoadOptions loading, bool changeUser);
  ~Daemon() override;

  /// Runs until SIGTERM or SIGINT, then returns true. Returns false when it cannot continue.
  bool run();

 private:
  void beforeWait();
  void stop();

  TunnelStatus tunnelStatus() override { return gateway_.tunnel().wholeStatus(); }
  std::vector<std::string> peers() override { return gateway_.tunnel().peerNames(); }
  std::optional<PeerStatus> peerStatus(size_t place, size_t flows) override {
    if (place >= gateway_.tunnel().peerCount()) return std::nullopt;
    return gateway_.tunnel().peerStatus(place, monotonicNow(), flows);
  }
  GatewayStatus gatewayStatus() override;
  std::string reload() override;
  std::string trace(UniqueFd file) override { return gateway_.trace(std::move(file)); }
  InviteResult invite(const InviteRequest& request) override { return gateway_.invite(request); }
  const History& history() override { return gateway_.history(); }
  std::string startTest(const std::string& peer, const MeasureRequest& request) override {
    return gateway_.tunnel().loadTest().start(peer, request, monotonicNow());
  }
  void stopTest() override { gateway_.tunnel().loadTest().stop(); }
  std::pair<MeasureStatus, PeerStatus> testStatus() override {
    PeerLoadTest& test = gateway_.tunnel().loadTest();
    return {test.status(monotonicNow()), test.peer(monotonicNow())};
  }
  uint64_t drain(Duration time) override { return gateway_.drain(time); }

  Loop loop_;
  SignalWatcher term_, interrupt_, hangup_;
  /// Taken before anything changes the host, released after the host is restored.
  ControlPath path_;
  LinuxHost host_;
  Gateway gateway_;
  std::unique_ptr<ControlServer> control_;
  std::vector<std::string> unconfined_;  ///< as confine() says
  size_t peersUp_ = 0;                   ///< as last reported to the service manager
  Timer deadlineTimer_;
  Timer watchdogTimer_;
  Timer settledTimer_;
  PrepareHook prepare_;
};

}  // namespace braid
