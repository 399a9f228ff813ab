#pragma once

// The receiver's side of coding blocks (CoFUSO section 4.3): datagrams with data and parities go in, lost
// datagrams' data comes out, and the sender is told what need not be sent again.
//
//     onSymbol, onParity, onTail    what arrives
//     poll, then onTaken            what decoding gives back, and that it has been used
//     write                         RECOVERED frames, into a datagram that leaves

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coding/block_decoder.h"
#include "tunnel/protect/protect_options.h"
#include "tunnel/protect/trace.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

/// Everything in what arrives comes from the peer and is checked. With ProtectOptions::decodeBuffer 0 parities
/// are counted and not used.
class BlockReceiver {
 public:
  /// `symbolCapacity`: bytes of the largest datagram. All must outlive it.
  BlockReceiver(const ProtectOptions& options, size_t symbolCapacity, const SubflowSet& subflows,
                const RecoveryTrace& trace);

  /// A datagram with data arrived; the pieces are its DATA frames.
  void onSymbol(SubflowId subflow, PacketNumber pn, std::span<const ByteView> pieces);
  /// A PARITY came in packet `pn` of subflow `on`. False when it is absurd or contradicts its block.
  bool onParity(const ParityFrame& frame, SubflowId on, PacketNumber pn, Time now);
  bool onTail(const ParityTailFrame& frame);

  /// The next datagram's data that decoding gave back; false when there is none. Valid until the next call.
  bool poll(BlockDecoder::Restored& out) { return decoder_.poll(out); }
  /// It has been read. `whole`: all its data was taken, so the sender need not send it again.
  void onTaken(const BlockDecoder::Restored& restored, bool whole, Time now);

  /// The sender is to be told something.
  bool hasWord() const { return !recovered_.empty(); }
  /// Writes RECOVERED frames as far as they fit. They are not sent again when lost: each only saves the peer a
  /// repair.
  void write(DatagramBuilder& build);

  /// PARITY frames that came.
  uint64_t parities() const { return parities_; }
  const BlockDecoder::Counts& counts() const { return decoder_.counts(); }

 private:
  /// RECOVERED frames that wait; what decoding gives back beyond it the peer repairs. Ours.
  static constexpr size_t kMaxRecovered = 64;

  void tell(SubflowId subflow, PacketNumber pn);

  const ProtectOptions& options_;
  const SubflowSet& subflows_;
  const RecoveryTrace& trace_;
  BlockDecoder decoder_;
  std::vector<RecoveredFrame> recovered_;  ///< to be told
  uint64_t parities_ = 0;
};

}  // namespace braid
