#pragma once

// What protection cost a subflow and what it was good for: one tally for each subflow, shown to the operator.

#include <cstddef>

#include "tunnel/subflow/sent_packets.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// Counts the protection that a subflow carries, and the fate of the subflow's own packets that are protected
/// elsewhere. Useful protection delivers the data before the packet that carried it first is given up.
class ProtectionTally {
 public:
  // ---- protection that leaves on the subflow; `bytes` of frames

  void onCopySent(size_t bytes) {
    ++counts_.copies;
    counts_.protectionBytes += bytes;
  }
  void onParitySent(size_t bytes) {
    ++counts_.parities;
    counts_.protectionBytes += bytes;
  }
  /// The rest of a parity that did not fit one datagram.
  void onTailSent(size_t bytes) { counts_.protectionBytes += bytes; }

  // ---- packets of the subflow itself

  /// A packet is protected for the first time, by a copy or in a block.
  void onProtected() { ++counts_.protectedPackets; }
  /// A packet in flight is acknowledged. To be called while its data is still remembered.
  void onAcked(const SentPacket& packet);
  /// A packet in flight is declared lost.
  void onLost(const SentPacket& packet);
  /// The peer says that it has decoded the packet's data. To be called before the ledger hears of it. False
  /// when that is no news.
  bool onDecoded(const SentPacket& packet);

  const ProtectionCounts& counts() const { return counts_; }

 private:
  ProtectionCounts counts_;
};

}  // namespace braid
