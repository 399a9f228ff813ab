#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/duplicate_filter.h"
#include "tunnel/lane/inner_counts.h"
#include "tunnel/lane/lane_options.h"
#include "tunnel/lane/resequencer.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The lane of inner packets, at the receiver: hands them out, each once, those of an ordered flow (TCP) in the order
/// of their flow, those of a timely one (UDP, ICMP) as they come. The other end is PacketLane.
///
/// What waits for its turn comes with poll(), to be asked after every call of another method.
class PacketReceiver {
 public:
  /// `pool`: of the packets; nothing is held for order while its buffers are short. Must outlive it.
  PacketReceiver(const LaneOptions& options, const PacketPool& pool)
      : pool_(pool), order_(resequencerOptions(options)) {}
  void setOptions(const LaneOptions& options) { order_.setOptions(resequencerOptions(options)); }

  /// The packet of a DATA frame. Comes back when it is of a timely flow and new: it is handed out at once. An empty
  /// handle else: it waits for poll(), or came before.
  Packet onData(const DataFrame& frame, Packet packet, Time now);
  /// The sender has given up packets of an ordered flow: nothing waits for them.
  void onSkip(const SkipFrame& skip, Time now) { order_.skip(skip.flow, skip.first, skip.count, now); }
  void onTimer(Time now) { order_.onTimer(now); }
  Time nextDeadline() const { return order_.nextDeadline(); }
  /// The next packet whose turn has come; false when there is none.
  bool poll(Packet& out) { return order_.poll(out); }

  /// What has arrived, duplicates included.
  const InboundCounts& counts() const { return counts_; }
  /// What is held for order.
  size_t heldPackets() const { return order_.heldPackets(); }
  size_t heldBytes() const { return order_.heldBytes(); }
  DropCounts drops() const;

 private:
  const PacketPool& pool_;
  Resequencer order_;
  /// By the flow's number without kDatagramFlow; of those that have come, lest the largest number cost all.
  std::vector<std::unique_ptr<DuplicateFilter>> timely_;
  InboundCounts counts_;
  uint64_t timelyDuplicates_ = 0;
};

}  // namespace braid
