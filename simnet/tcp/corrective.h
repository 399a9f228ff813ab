#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.h"
#include "base/ring.h"
#include "simnet/inner_packets.h"
#include "simnet/tcp/alarm.h"
#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// "TCP Instant Recovery" (Flach et al., SIGCOMM 2013; FUSO section VI-A, CoFUSO section 6.2.1):
/// what was sent within a time bin is a block, and an XOR of it goes a quarter of a round trip after the bin
/// has closed. The receiver gets back what a single loss took, and says so: the sender's window gives way as
/// for a mark. If more is missing it says how far the block goes, and the sender repairs at once: so a block
/// is a probe, too.
///
/// The XOR is taken over pieces of a full segment's size, from the block's beginning on, so a gap of at most
/// that many bytes can be filled wherever it is. It travels outside the window, in a segment that begins
/// where the block does and names its end by an option of kind 254 (RFC 6994), for which every full segment is
/// eight bytes smaller. The names of the options are ours.

/// When blocks are sent. Sums up new data only: repairs are in no block.
class CodedBins {
 public:
  /// Segments of a block at most, and the part of a round trip from its end to the XOR.
  static constexpr uint32_t kMaxSegments = 16;
  static constexpr int kWaitsPerRtt = 4;

  /// `bin`: length of a bin in round trips; `send` is called with each block.
  CodedBins(Timeline& timeline, double bin, std::function<void(Range)> send)
      : timeline_(timeline), bin_(bin), send_(std::move(send)), alarm_(timeline, [this] { onAlarm(); }) {}

  /// New data was sent, right behind what was sent before.
  void onSent(Range bytes, Duration srtt);
  void stop() { alarm_.set(kNever); }

 private:
  struct Block {
    Range bytes;
    Time due{};
  };
  void close();
  void setAlarm();
  void onAlarm();

  Timeline& timeline_;
  double bin_;
  std::function<void(Range)> send_;
  Alarm alarm_;
  Range open_;  // the block that grows
  uint32_t segments_ = 0;
  Time closesAt_ = kNever;
  Duration srtt_{};
  Ring<Block> waiting_;
};

/// The option of an XOR (`value`: sequence number behind its block), of an ACK that could not fill the gaps
/// (the same), and of one that could (no value).
struct CodingOption {
  static constexpr size_t kSize = 8;
  std::optional<uint32_t> value;

  /// Eight bytes with the value, four without.
  Bytes write() const;
  /// Of a packet with a TCP header; nullopt without the option.
  static std::optional<CodingOption> read(ByteView packet, const InnerPacket& ip);
};

/// XORs the content (fillContent()) of `block`, in pieces of the sum's size, into `sum`.
void xorContent(uint64_t seed, Range block, ByteSpan sum);

}  // namespace braid::sim::tcp
