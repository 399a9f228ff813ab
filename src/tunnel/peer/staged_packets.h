#pragma once

// Inner packets for a peer that has no session which can carry them now ("staged" is WireGuard's
// term for them). Each Peer owns one such queue. Three callers use it:
//
//     Peer       opens it when a session ends, and empties it when the peer is up or time is over
//     Forwarder  adds the packets that come meanwhile, if it is open
//     Forwarder  adds packets that are too large for the smallest MTU, which a new session assumes
//                until its MTU search ends. Their hosts would otherwise be told to send smaller
//                packets, and would do so for minutes

#include <cstddef>
#include <utility>

#include "base/containers.h"
#include "base/drop.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/packet_events.h"

namespace braid {

struct StagedPacket {
  Packet packet;  ///< an inner packet (TUN) or Ethernet frame (TAP)
  /// Decides who gets an ICMP error if the packet cannot be sent after all.
  PacketOrigin origin = PacketOrigin::kLocalHost;
};

/// A FIFO of packets that is open for kMaxWait after each open(). When the peer's gateway, or this
/// one, has only restarted, the peer is back within that time and gets its packets. A TCP
/// sender's first retransmission is often among them; the next one would come only after twice the
/// timeout.
class StagedPackets final : private QuotaUser {
 public:
  /// Chosen: a supervisor restarts a daemon within a fraction of it, and a host that connects to an
  /// unreachable peer should learn of that soon.
  static constexpr Duration kMaxWait = 1s;
  /// Chosen: twice WireGuard's limit, because what an ended session leaves is staged here, too.
  static constexpr size_t kMaxPackets = 256;

  /// `quota`: the process-wide limit of queued packets; one packet counts 1. `drops`: counts each
  /// dropped packet as Drop::kPeerDown. Both must outlive this object.
  StagedPackets(MemoryQuota& quota, DropCounts& drops)
      : QuotaUser(&quota, Reclaimable::kYes), drops_(drops) {}

  /// Opens the queue until `now` + kMaxWait, also for packets that wait already.
  void open(Time now) { closesAt_ = now + kMaxWait; }
  /// Whether packets may be added. It is closed before the first open().
  bool isOpen(Time now) const { return now < closesAt_; }
  bool empty() const { return packets_.empty(); }
  size_t size() const { return packets_.size(); }
  /// When the owner must take out all packets with poll(), as they have waited long enough; kNever
  /// when none waits.
  Time deadline() const { return empty() ? kNever : closesAt_; }

  /// Adds the packet at the end. The caller has checked isOpen(). When kMaxPackets wait already,
  /// the new packet is dropped: its sender resends it later than the earlier ones.
  void add(StagedPacket packet) {
    if (packets_.size() >= kMaxPackets) return countDrop(drops_, Drop::kPeerDown);
    packets_.pushBack(std::move(packet));
    setUsed(packets_.size());
  }
  /// Takes the oldest packet. Returns false, and leaves `out` as it is, when none waits.
  bool poll(StagedPacket& out) {
    if (empty()) return false;
    out = packets_.takeFront();
    setUsed(packets_.size());
    return true;
  }

 private:
  // QuotaUser: the quota is exceeded and this queue is the largest user. Drops the newer half, so
  // that the search for the largest user is rare.
  void reclaim() override {
    for (size_t left = (packets_.size() + 1) / 2; left > 0; --left) {
      packets_.popBack();
      countDrop(drops_, Drop::kPeerDown);
    }
    setUsed(packets_.size());
  }

  Ring<StagedPacket> packets_;
  Time closesAt_ = Time::min();
  DropCounts& drops_;
};

}  // namespace braid
