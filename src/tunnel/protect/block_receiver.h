#pragma once

// The receiver's side of coding blocks (CoFUSO section 4.3): datagrams with data and parities go in, lost
// datagrams' data comes out, and the sender is told what need not be sent again.
//
//     onSymbol, onParity, onTail    what arrives
//     onTimer                       that time passes: what is not used gives its memory back
//     poll, then onTaken            what decoding gives back, and that it has been used
//     write                         RECOVERED frames, into a datagram that leaves

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coding/block_decoder.h"
#include "tunnel/lane/trace.h"
#include "tunnel/protect/protect_options.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

/// Everything in what arrives comes from the peer and is checked. With ProtectOptions::decodeBuffer 0 parities
/// are counted and not used.
///
/// Memory: of each subflow as many symbols as came at most within the time in which a parity may still name them, by the
/// paths' round trips; no more than kUncoded, or ProtectOptions::decodeBuffer where a parity has spoken of the subflow
/// within the last minute or so. None when no data has come for kIdle. All sessions share ProtectOptions::decodeMemory.
class BlockReceiver {
 public:
  /// Symbols that are kept of a subflow before its first parity, at most: those of the largest block. Ours.
  static constexpr size_t kUncoded = kMaxBlockSymbols;
  /// How long nothing has come when memory is given back; looked at by onTimer() calls, which may be rare. Ours.
  static constexpr Duration kIdle = 10s;

  /// `symbolCapacity`: bytes of the largest datagram. All must outlive it.
  BlockReceiver(const ProtectOptions& options, size_t symbolCapacity, const SubflowSet& subflows,
                const RecoveryTrace& trace);

  /// A datagram with data arrived; the pieces are its DATA frames.
  void onSymbol(SubflowId subflow, PacketNumber pn, std::span<const ByteView> pieces, Time now);
  /// A PARITY came in packet `pn` of subflow `on`. False when it is absurd or contradicts its block.
  bool onParity(const ParityFrame& frame, SubflowId on, PacketNumber pn, Time now);
  bool onTail(const ParityTailFrame& frame);
  void onTimer(Time now);

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
  /// Bytes of memory for what is kept to decode.
  size_t footprint() const { return decoder_.footprint(); }

 private:
  /// kIdle without a parity, so many times: the sender does not code any more. Ours.
  static constexpr int kUncodedLooks = 6;
  /// RECOVERED frames that wait; what decoding gives back beyond it the peer repairs. Ours.
  static constexpr size_t kMaxRecovered = 64;

  void lookAtPaths(Time now);
  void tell(SubflowId subflow, PacketNumber pn);

  const ProtectOptions& options_;
  const SubflowSet& subflows_;
  const RecoveryTrace& trace_;
  BlockDecoder decoder_;
  std::vector<RecoveredFrame> recovered_;  ///< to be told
  uint64_t parities_ = 0;
  Time nextLook_ = Time::min();
  Time nextPaths_ = Time::min();
  uint64_t seenSymbols_ = 0;   ///< at the last look
  uint64_t seenParities_ = 0;  ///< at the last look
  int uncodedLooks_ = 0;       ///< since a parity came
};

}  // namespace braid
