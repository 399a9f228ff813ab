#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.h"
#include "base/containers.h"
#include "simnet/inner_packets.h"
#include "simnet/tcp/alarm.h"
#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// "TCP Instant Recovery" (Flach et al., SIGCOMM 2013; FUSO section VI-A, CoFUSO section 6.2.1):
/// the data sent within a time bin is a block, and an XOR of the block is sent a quarter of a round
/// trip after the bin has closed. With it the receiver restores a single loss and reports that; the
/// sender then reduces its window as for a mark. If more is missing, the receiver reports where the
/// block ends, and the sender retransmits at once. So a block is also a probe.
///
/// The XOR is taken over pieces of a full segment's size, from the block's beginning on. So a gap
/// of at most that many bytes can be filled wherever it lies. The XOR is sent outside the window,
/// in a segment that has the block's first sequence number and names its end in an option of kind
/// 254 (RFC 6994). Because of this option every full segment is eight bytes smaller. Its experiment
/// identifier is chosen by this project.

/// Divides new data into blocks and decides when their XOR is sent. Retransmissions are not part of
/// a block.
class CodedBins {
 public:
  /// Most segments of a block. The XOR is sent 1/kWaitsPerRtt of a round trip after the block's
  /// end.
  static constexpr uint32_t kMaxSegments = 16;
  static constexpr int kWaitsPerRtt = 4;

  /// `bin`: length of a bin in round trips. `send` is called with each block when its XOR is due.
  CodedBins(Timeline& timeline, double bin, std::function<void(Range)> send)
      : timeline_(timeline),
        bin_(bin),
        send_(std::move(send)),
        alarm_(timeline, [this] { onAlarm(); }) {}

  /// New data was sent, directly behind the data sent before.
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
  Range open_;  // the block that still grows
  uint32_t segments_ = 0;
  Time closesAt_ = kNever;
  Duration srtt_{};
  Ring<Block> waiting_;
};

/// The TCP option of three kinds of segments: an XOR (`value`: the sequence number behind its
/// block), an ACK after an XOR that could not fill the gaps (the same value), and an ACK after one
/// that could (no value).
struct CodingOption {
  static constexpr size_t kSize = 8;
  std::optional<uint32_t> value;

  /// The encoded option: eight bytes with a value, four without.
  Bytes write() const;
  /// Reads the option of a packet with a TCP header; nullopt when it has none.
  static std::optional<CodingOption> read(ByteView packet, const InnerPacket& ip);
};

/// XORs the content (fillContent()) of `block` into `sum`, in pieces of sum.size() bytes.
void xorContent(uint64_t seed, Range block, ByteSpan sum);

}  // namespace braid::sim::tcp
