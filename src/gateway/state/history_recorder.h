#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/state/availability.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Fills the history, and samples which uplinks work. Asks for a few peers' figures in each turn,
/// so that many peers do not delay packets.
class HistoryRecorder {
 public:
  static constexpr size_t kPeersAtOnce = 2;

  /// `tunnel` must outlive this. `status`: of the gateway.
  HistoryRecorder(const Tunnel& tunnel, std::function<GatewayStatus()> status, Time now)
      : tunnel_(tunnel), status_(std::move(status)), deadline_(now) {}

  /// Call at deadline().
  void keep(Time now);
  /// Another configuration is in effect.
  void onReload() { history_.beginAgain(refused(status_())); }
  void onEvent(const Event& event);
  void onPortal(const std::string& uplink, const std::string& text);
  Time deadline() const { return deadline_; }
  const History& history() const { return history_; }
  const Availability& availability() const { return availability_; }

 private:
  void endStep(Time now);
  RefusedCounts refused(const GatewayStatus& gateway) const;

  const Tunnel& tunnel_;
  std::function<GatewayStatus()> status_;
  History history_;
  Availability availability_;
  std::set<std::string> working_;  ///< uplinks with a path that works, in this step
  bool isFirst_ = true;            ///< in the first step, no peer has had the time to come up
  size_t next_ = 0;                ///< index of the next peer to ask
  Time step_{};                    ///< when the current step ended
  Time deadline_;
};

}  // namespace braid
