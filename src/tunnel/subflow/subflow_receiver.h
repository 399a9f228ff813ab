#pragma once

#include <cstddef>
#include <cstdint>

#include "tunnel/subflow/ack_sender.h"
#include "tunnel/subflow/subflow_status.h"
#include "tunnel/wire/replay_window.h"

namespace braid {

/// What arrives on one subflow: which packet numbers are new, what is to be acknowledged, and how much it was.
class SubflowReceiver {
 public:
  bool isReplay(PacketNumber pn) const { return !replay_.check(pn); }
  /// The packet number after the largest one that came.
  PacketNumber expected() const { return acks_.expected(); }

  /// A datagram of `bytes` with a new packet number was opened and all its frames understood; `eliciting` and
  /// `rtt` as in AckSender. True: none with a larger number came before.
  bool onPacket(PacketNumber pn, bool eliciting, Ecn ecn, size_t bytes, Duration rtt, Time now) {
    bool isNewest = pn >= expected();
    replay_.commit(pn);
    acks_.onPacket(pn, eliciting, ecn, rtt, now);
    ++counts_.receivedPackets;
    counts_.receivedBytes += bytes;
    return isNewest;
  }
  /// A datagram was opened and not understood: it is not acknowledged, and must not take effect again.
  void onMalformed(PacketNumber pn) { replay_.commit(pn); }

  AckSender& acks() { return acks_; }
  const AckSender& acks() const { return acks_; }
  const ReceiveCounts& counts() const { return counts_; }

 private:
  ReplayWindow replay_;
  AckSender acks_;
  ReceiveCounts counts_;
};

}  // namespace braid
