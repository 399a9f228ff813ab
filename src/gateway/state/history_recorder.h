#pragma once

#include "gateway/control/history.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Fills the history. Asks for a few peers' figures in each turn, so that many peers do not delay
/// packets.
class HistoryRecorder {
 public:
  static constexpr size_t kPeersAtOnce = 2;

  /// `tunnel` must outlive this.
  HistoryRecorder(const Tunnel& tunnel, Time now) : tunnel_(tunnel), deadline_(now) {}

  /// Call at deadline().
  void keep(Time now);
  void onEvent(const Event& event);
  void onPortal(const std::string& uplink, const std::string& text);
  Time deadline() const { return deadline_; }
  const History& history() const { return history_; }

 private:
  const Tunnel& tunnel_;
  History history_;
  size_t next_ = 0;  ///< index of the next peer to ask
  Time step_{};      ///< when the current step ended
  Time deadline_;
};

}  // namespace braid
