#pragma once

#include "gateway/control/history.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Writes the history: asks a few peers in each turn, so that many of them do not hold packets up.
class HistoryKeeper {
 public:
  static constexpr size_t kPeersAtOnce = 2;

  /// `tunnel` must outlive this.
  HistoryKeeper(const Tunnel& tunnel, Time now) : tunnel_(tunnel), deadline_(now) {}

  /// Call at deadline().
  void keep(Time now);
  void onEvent(const Event& event);
  Time deadline() const { return deadline_; }
  const History& history() const { return history_; }

 private:
  const Tunnel& tunnel_;
  History history_;
  size_t next_ = 0;  ///< the peer that is asked next
  Time step_{};      ///< when the present step ended
  Time deadline_;
};

}  // namespace braid
