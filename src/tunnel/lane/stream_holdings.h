#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/budget.h"
#include "base/packet.h"
#include "tunnel/lane/stream.h"
#include "tunnel/lane/stream_options.h"

namespace braid {

/// A part of a budget that nothing can be taken away from: who keeps it asks before.
class FirmKeeper final : public Keeper {
 public:
  explicit FirmKeeper(Budget* budget) : Keeper(budget, false) {}
  bool mayKeep(size_t more) { return makeRoom(more); }
  void set(size_t amount) { keep(amount); }

 private:
  void giveBack() override {}
};

/// What the streams of a session hold for their readers, and which of them holds most. Each step takes the same time,
/// however many streams there are.
class StreamHoldings {
 public:
  /// Both must outlive it.
  StreamHoldings(const StreamOptions& options, PacketPool& pool)
      : options_(options), shared_(options.memory), buffers_(&pool.budget(PacketUse::kHeld)) {}

  /// Bytes of memory, whole buffers.
  size_t bytes() const { return bytes_; }
  /// Much is held: what the peer may send is to grow slowly.
  bool isShort() const { return bytes_ > options_.heldBytes / 2; }
  /// So many bytes more are beyond this peer's bound.
  bool exceeds(size_t more) const { return bytes_ + more > options_.heldBytes; }
  /// Whether so many bytes more, one buffer at most, find room among what all peers hold.
  bool mayHold(size_t more) { return shared_.mayKeep(more) && buffers_.mayKeep(1); }
  /// The stream holds more or less than when it was told last.
  void onChange(Stream& stream);
  /// The stream that holds most, or nearly so; nullptr: none holds anything.
  Stream* largest() const;

 private:
  /// Those that hold less than 2 KB, 4 KB, ...
  static constexpr size_t kClasses = 24;
  static size_t classOf(size_t bytes) {
    return bytes == 0 ? 0 : std::min<size_t>(std::bit_width(bytes >> 11) + size_t{1}, kClasses - 1);
  }

  const StreamOptions& options_;
  FirmKeeper shared_;
  FirmKeeper buffers_;
  size_t bytes_ = 0;
  size_t packets_ = 0;
  std::array<IntrusiveList<Stream, &Stream::bySize_>, kClasses> bySize_;  ///< the first one is not used
};

}  // namespace braid
