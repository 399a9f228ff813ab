#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/duplicate_filter.h"
#include "tunnel/lane/inner_counts.h"
#include "tunnel/lane/lane_options.h"
#include "tunnel/lane/resequencer.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The lane of inner packets, at the receiver: hands them out, each once, those of an ordered flow (TCP, QUIC, VPNs)
/// in the order of their flow, those of a timely one (UDP, ICMP) as they come. The other end is PacketLane.
///
/// What waits for its turn comes with poll(), to be asked after every call of another method.
///
/// What is known of a flow takes memory for as long as packets of it come, and a while longer. When memory is short
/// (LaneOptions::orderMemory), a flow that is not known is refused [flow_table_full], and who has most forgets.
class PacketReceiver final : private Keeper {
 public:
  /// A flow without packets for so long is forgotten, but for the next DSN of an ordered one. Ours: no less than the
  /// longest repair time that can be configured, so that nothing of it is on its way.
  static constexpr Duration kForget = 60s;

  /// `pool`: of the packets; nothing is held for order while its buffers are short. Must outlive it.
  PacketReceiver(const LaneOptions& options, const PacketPool& pool)
      : Keeper(options.orderMemory),
        pool_(pool),
        orderOptions_(resequencerOptions(options)),
        order_(orderOptions_) {}
  void setOptions(const LaneOptions& options) {
    Duration patience = orderOptions_.patience;
    orderOptions_ = resequencerOptions(options);
    setPatience(patience);
  }
  /// Ordered datagrams wait for those before them for so long, but no longer than all others: see orderPatience().
  void setPatience(Duration patience) {
    orderOptions_.patience = std::min(patience, orderOptions_.holdTime);
    order_.setOptions(orderOptions_);
  }

  /// The packet of a DATA frame. Comes back when it is of a timely flow and new: it is handed out at once. An empty
  /// handle else: it waits for poll(), or came before.
  Packet onData(const DataFrame& frame, Packet packet, Time now);
  /// The sender has given up packets of an ordered flow: nothing waits for them.
  void onSkip(const SkipFrame& skip, Time now);
  void onTimer(Time now);
  Time nextDeadline() const { return released_ ? Time::min() : order_.nextDeadline(); }
  /// The next packet whose turn has come; false when there is none.
  bool poll(Packet& out);
  /// Buffers are short: releases what has waited longest, with all of its flow before it.
  void relieve() { order_.relieve(); }

  /// What has been handed out.
  const InboundCounts& counts() const { return counts_; }
  /// What is held for order.
  size_t heldPackets() const { return order_.heldPackets(); }
  size_t heldBytes() const { return order_.heldBytes(); }
  /// Bytes of memory for what is known of flows.
  size_t footprint() const { return order_.footprint() + timelyPages_ * sizeof(TimelyPage); }
  DropCounts drops() const;

 private:
  /// The filters of neighbouring flows: a peer that names few flows takes little memory.
  struct TimelyPage {
    std::array<DuplicateFilter, 16> filters;
    Time used;
  };

  void giveBack() override;  // Keeper
  bool admits(size_t more);
  void count(const Packet& packet);
  DuplicateFilter* timely(FlowNumber flow, Time now);
  void forget(Time before);

  const PacketPool& pool_;
  ResequencerOptions orderOptions_;
  Resequencer order_;
  std::vector<std::unique_ptr<TimelyPage>> timely_;  ///< by the flow's number without kDatagramFlow
  size_t timelyPages_ = 0;                           ///< that there are
  Time nextLook_ = Time::min();                      ///< for what may be forgotten
  bool released_ = false;                            ///< out of turn: something may be there to be polled
  InboundCounts counts_;
  uint64_t timelyDuplicates_ = 0;
  uint64_t refused_ = 0;  ///< packets of flows that there was no memory for
};

}  // namespace braid
