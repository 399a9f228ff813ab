#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/budget.h"
#include "base/drop.h"
#include "base/packet.h"
#include "base/ring.h"
#include "base/time.h"

namespace braid {

/// Who asked for a packet to be sent.
enum class Asker : uint8_t {
  kLocalHost,    ///< is told when it cannot be
  kNobody,       ///< a copy for many, or what another peer sent
  kEndedSession  ///< it has left once: the ack shim and the ECN proxy have seen it
};

struct WaitingPacket {
  Packet packet;  ///< an inner packet (TUN) or frame (TAP)
  Asker asker = Asker::kLocalHost;
};

/// Packets for a peer without a session, for as long as it may be back at once: its gateway was restarted, or this one
/// was. A TCP sender's first retransmission is among them, and the next comes only after twice the time. WireGuard's
/// queue of staged packets is the same. Packets that are too large for what the next session knows of its paths at
/// first wait a round trip longer: their host would else be told to send smaller ones, and believe it for minutes.
///
/// The first to come stay: what is refused afterwards is sent again later than they are.
class WaitingRoom final : private Keeper {
 public:
  /// From the end of a session, or of a peer's beginning, packets wait for so long. Ours: a supervisor starts a daemon
  /// again within a fraction of it, and who connects to a peer that is away is to learn it soon.
  static constexpr Duration kPatience = 1s;
  /// Packets that wait. Ours: twice WireGuard's, since what sessions leave behind comes here, too.
  static constexpr size_t kMost = 256;

  /// `budget`: of packets that are queued. `drops`: where those are counted for which there is no room [peer_down].
  /// Both must outlive it.
  WaitingRoom(Budget& budget, DropCounts& drops) : Keeper(&budget), drops_(drops) {}

  /// Packets may wait until kPatience from now.
  void open(Time now) { closesAt_ = now + kPatience; }
  bool isOpen(Time now) const { return now < closesAt_; }
  bool empty() const { return packets_.empty(); }
  size_t size() const { return packets_.size(); }
  /// When those that wait are to be taken out in any case.
  Time deadline() const { return empty() ? kNever : closesAt_; }

  /// The packet waits, if there is room for it.
  void add(WaitingPacket packet) {
    if (packets_.size() >= kMost) return countDrop(drops_, Drop::kPeerDown);
    packets_.pushBack(std::move(packet));
    keep(packets_.size());
  }
  /// The one that has waited longest; false: none waits.
  bool poll(WaitingPacket& out) {
    if (empty()) return false;
    out = std::move(packets_.front());
    packets_.popFront();
    keep(packets_.size());
    return true;
  }

 private:
  // Keeper; half of them, so that the search for who keeps most is rare.
  void giveBack() override {
    for (size_t left = (packets_.size() + 1) / 2; left > 0; --left) {
      packets_.popBack();
      countDrop(drops_, Drop::kPeerDown);
    }
    keep(packets_.size());
  }

  Ring<WaitingPacket> packets_;
  Time closesAt_ = Time::min();
  DropCounts& drops_;
};

}  // namespace braid
