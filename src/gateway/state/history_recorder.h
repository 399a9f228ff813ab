#pragma once

#include <functional>
#include <utility>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Fills the history. Asks for a few peers' figures in each turn, so that many peers do not delay
/// packets.
class HistoryRecorder {
 public:
  static constexpr size_t kPeersAtOnce = 2;

  /// `tunnel` must outlive this. `status`: of the gateway.
  HistoryRecorder(const Tunnel& tunnel, std::function<GatewayStatus()> status, Time now)
      : tunnel_(tunnel), status_(std::move(status)), deadline_(now) {}

  /// Call at deadline().
  void keep(Time now);
  /// Another configuration is in effect.
  void onReload() { history_.beginAgain(refused()); }
  void onEvent(const Event& event);
  void onPortal(const std::string& uplink, const std::string& text);
  Time deadline() const { return deadline_; }
  const History& history() const { return history_; }

 private:
  RefusedCounts refused() const;

  const Tunnel& tunnel_;
  std::function<GatewayStatus()> status_;
  History history_;
  size_t next_ = 0;  ///< index of the next peer to ask
  Time step_{};      ///< when the current step ended
  Time deadline_;
};

}  // namespace braid
