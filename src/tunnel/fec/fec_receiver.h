#pragma once

// The receiver's side of coding blocks (CoFUSO section 4.3). Datagrams with data and parities come
// in, the data of lost datagrams comes out, and the sender is told what it need not resend.
//
//     onSymbol, onParity, onTail    what arrives
//     onTimer                       time passes: memory that is not used is freed
//     poll, then onTaken            takes what was decoded, and confirms that it was used
//     write                         puts RECOVERED frames into a datagram to send

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coding/block_decoder.h"
#include "tunnel/fec/policies.h"
#include "tunnel/queue/trace.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Everything that arrives comes from the peer and is checked. If ProtectOptions::decodeBuffer is
/// 0, parities are only counted.
///
/// Memory: for each subflow, the symbols that arrive within the time in which a parity may still
/// name them, which follows from the RTT of the paths. There are at most kUncoded of them, or
/// ProtectOptions::decodeBuffer if a parity named the subflow within about the last minute. All are
/// freed when no data has arrived for kIdle. All sessions share `memory`.
class FecReceiver {
 public:
  /// Maximum number of symbols kept of a subflow before its first parity: as many as the largest
  /// block has.
  static constexpr size_t kUncoded = kMaxBlockSymbols;
  /// Memory is freed after this time without data. onTimer() checks it, which may be called rarely.
  static constexpr Duration kIdle = 10s;

  /// `symbolCapacity`: size of the largest datagram in bytes. `memory`: quota in bytes; nullptr: no
  /// bound. The references must outlive this object.
  FecReceiver(const ProtectOptions& options, size_t symbolCapacity, const SubflowSet& subflows,
              const RecoveryTrace& trace, MemoryQuota* memory = nullptr);

  /// A datagram with data arrived; `pieces` are its data-unit frames.
  void onSymbol(SubflowId subflow, PacketNumber pn, std::span<const ByteView> pieces, Time now);
  /// A PARITY arrived in packet `pn` of subflow `on`. False when it is absurd or contradicts its
  /// block.
  bool onParity(const ParityFrame& frame, SubflowId on, PacketNumber pn, Time now);
  bool onTail(const ParityTailFrame& frame);
  void onTimer(Time now);

  /// The next decoded datagram's data; false when there is none. Valid until the next call.
  bool poll(BlockDecoder::Restored& out) { return decoder_.poll(out); }
  /// The data of poll() has been read. `whole`: all of it was accepted, so the sender need not
  /// resend it.
  void onTaken(const BlockDecoder::Restored& restored, bool whole, Time now);

  /// RECOVERED frames wait to be sent.
  bool hasWord() const { return !recovered_.empty(); }
  /// Writes the RECOVERED frames that fit. They are not resent when lost, because each only saves
  /// the peer a repair.
  void write(DatagramBuilder& build);

  /// PARITY frames that have arrived.
  uint64_t parities() const { return parities_; }
  const BlockDecoder::Counts& counts() const { return decoder_.counts(); }
  /// Bytes of memory in use for decoding.
  size_t footprint() const { return decoder_.footprint(); }

 private:
  /// After this many times kIdle without a parity, the sender is assumed not to code any more.
  static constexpr int kUncodedLooks = 6;
  /// Maximum number of RECOVERED frames that wait; further decoded packets are not reported, and
  /// the peer repairs them.
  static constexpr size_t kMaxRecovered = 64;

  void lookAtPaths(Time now);
  void tell(SubflowId subflow, PacketNumber pn);

  const ProtectOptions& options_;
  const SubflowSet& subflows_;
  const RecoveryTrace& trace_;
  BlockDecoder decoder_;
  std::vector<RecoveredFrame> recovered_;  ///< still to be sent
  uint64_t parities_ = 0;
  Time nextLook_ = Time::min();
  Time nextPaths_ = Time::min();
  uint64_t seenSymbols_ = 0;   ///< at the last look
  uint64_t seenParities_ = 0;  ///< at the last look
  int uncodedLooks_ = 0;       ///< looks since a parity arrived
};

}  // namespace braid
