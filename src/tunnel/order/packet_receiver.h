#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/drop.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/order/duplicate_filter.h"
#include "tunnel/order/resequencer.h"
#include "tunnel/queue/counts.h"
#include "tunnel/queue/options.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The lane of inner packets at the receiver. Hands out every packet once: packets of an ordered
/// flow (TCP, QUIC, VPNs) in the order of their flow, packets of a timely flow (UDP, ICMP) as they
/// arrive. The other end is PacketQueues.
///
/// poll() returns the packets that waited and are due. Call it after every call of another method.
///
/// Per-flow state is freed kForget (60 s) after the flow's last packet. When memory is short
/// (`memory`), packets of new flows are dropped (flow_table_full), and the session
/// that uses the most memory frees the state of flows for which no packets wait, or else releases
/// its held packets.
class PacketReceiver final : private QuotaUser {
 public:
  /// The state of a flow without packets for this long is freed, except the next DSN of an ordered
  /// flow. Chosen: at least the longest repair time that can be configured, so that no packet of
  /// the flow is still on its way.
  static constexpr Duration kForget = 60s;

  /// `pool`: where the packets come from; held packets are released early while its buffers are
  /// short. `memory`: quota of per-flow state in bytes; nullptr: no bound. Both must outlive the
  /// object.
  explicit PacketReceiver(const QueueOptions& options, const PacketPool& pool,
                          MemoryQuota* memory = nullptr)
      : QuotaUser(memory, Reclaimable::kYes),
        pool_(pool),
        followsPaths_(options.holdTime == 0s),
        orderOptions_(resequencerOptions(options)),
        order_(orderOptions_) {}
  void setOptions(const QueueOptions& options) {
    Duration patience = orderOptions_.patience;
    orderOptions_ = resequencerOptions(options);
    followsPaths_ = options.holdTime == 0s;
    setPatience(patience);
  }
  /// Ordered datagrams wait this long for those before them, but at most the hold time of other
  /// flows; see orderPatience(). Other flows wait as long, too, unless the options fix their hold
  /// time.
  void setPatience(Duration patience) {
    if (followsPaths_) orderOptions_.holdTime = std::max(kHoldTime, patience);
    orderOptions_.patience = std::min(patience, orderOptions_.holdTime);
    order_.setOptions(orderOptions_);
  }

  /// Takes the packet of a DATA frame. Returns it when it is new and of a timely flow: it is to be
  /// delivered at once. Otherwise returns an empty handle: the packet waits for poll(), or was
  /// dropped (a duplicate, or no memory for its flow).
  Packet onData(const DataFrame& frame, Packet packet, Time now);
  /// The sender has given up packets of an ordered flow: later ones no longer wait for them.
  void onSkip(const SkipFrame& skip, Time now);
  void onTimer(Time now);
  Time nextDeadline() const { return released_ ? Time::min() : order_.nextDeadline(); }
  /// Takes the next packet that is due; false when there is none.
  bool poll(Packet& out);
  /// Buffers are short: releases the packet that has waited longest, and all of its flow before it.
  void releaseOldest() { order_.releaseOldest(); }

  /// Packets handed out.
  const InboundCounts& counts() const { return counts_; }
  /// Packets and bytes held for order.
  size_t heldPackets() const { return order_.heldPackets(); }
  size_t heldBytes() const { return order_.heldBytes(); }
  /// Bytes of memory of the per-flow state.
  size_t footprint() const { return order_.footprint() + timelyPages_ * sizeof(TimelyPage); }
  DropCounts drops() const;

 private:
  /// The duplicate filters of 16 neighboring flow numbers, so that a peer that uses few flows takes
  /// little memory.
  struct TimelyPage {
    std::array<DuplicateFilter, 16> filters;
    Time used;
  };

  void reclaim() override;  // QuotaUser
  bool admits(size_t more);
  void count(const Packet& packet);
  DuplicateFilter* timely(FlowNumber flow, Time now);
  void forget(Time before);

  const PacketPool& pool_;
  bool followsPaths_;  ///< the hold time is not fixed by the options
  ResequencerOptions orderOptions_;
  Resequencer order_;
  std::vector<std::unique_ptr<TimelyPage>> timely_;  ///< by flow number without kDatagramFlow
  size_t timelyPages_ = 0;                           ///< pages in use
  Time nextLook_ = Time::min();                      ///< when to search for state that may be freed
  bool released_ = false;  ///< reclaim() released packets, which poll() may have
  InboundCounts counts_;
  uint64_t timelyDuplicates_ = 0;
  uint64_t refused_ = 0;  ///< packets dropped because there was no memory for their flow
};

}  // namespace braid
