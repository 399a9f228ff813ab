#pragma once

#include <cstddef>
#include <utility>

#include "base/containers.h"
#include "base/drop.h"
#include "base/memory.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/packet_events.h"

namespace braid {

struct StagedPacket {
  Packet packet;  ///< an inner packet (TUN) or frame (TAP)
  PacketOrigin asker = PacketOrigin::kLocalHost;
};

/// Packets for a peer without a session, kept while the peer may be back at once because its
/// gateway or this one has restarted. A TCP sender's first retransmission is often among them; its
/// next one would come only after twice the timeout. WireGuard stages packets in the same way.
/// Packets that are too large for what the next session knows of its paths at first are kept for a
/// round trip longer. Otherwise their host would be told to send smaller ones, and would do so for
/// minutes.
///
/// When the queue is full, new packets are dropped: their senders resend them later than the
/// earlier ones.
class StagedPackets final : private QuotaUser {
 public:
  /// Packets wait at most this long after the end of a session or the creation of the peer. Chosen:
  /// a supervisor restarts a daemon within a fraction of it, and a host that connects to an
  /// unreachable peer should learn of that soon.
  static constexpr Duration kPatience = 1s;
  /// Maximum number of packets that wait. Chosen: twice WireGuard's limit, because packets that
  /// sessions leave behind are staged here, too.
  static constexpr size_t kMost = 256;

  /// `budget`: memory quota of queued packets. `drops`: counts packets for which there is no room
  /// [peer_down]. Both must outlive this object.
  StagedPackets(MemoryQuota& budget, DropCounts& drops) : QuotaUser(&budget), drops_(drops) {}

  /// Packets may wait until kPatience from now.
  void open(Time now) { closesAt_ = now + kPatience; }
  bool isOpen(Time now) const { return now < closesAt_; }
  bool empty() const { return packets_.empty(); }
  size_t size() const { return packets_.size(); }
  /// When the waiting packets must be taken out at the latest.
  Time deadline() const { return empty() ? kNever : closesAt_; }

  /// Stages the packet, or drops it when kMost packets wait.
  void add(StagedPacket packet) {
    if (packets_.size() >= kMost) return countDrop(drops_, Drop::kPeerDown);
    packets_.pushBack(std::move(packet));
    keep(packets_.size());
  }
  /// The packet that has waited longest; false: none waits.
  bool poll(StagedPacket& out) {
    if (empty()) return false;
    out = std::move(packets_.front());
    packets_.popFront();
    keep(packets_.size());
    return true;
  }

 private:
  // QuotaUser: drops half of them, so that the search for the user with most packets is rare.
  void reclaim() override {
    for (size_t left = (packets_.size() + 1) / 2; left > 0; --left) {
      packets_.popBack();
      countDrop(drops_, Drop::kPeerDown);
    }
    keep(packets_.size());
  }

  Ring<StagedPacket> packets_;
  Time closesAt_ = Time::min();
  DropCounts& drops_;
};

}  // namespace braid
