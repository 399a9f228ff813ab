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
  explicit FirmKeeper(Budget* budget) : Keeper(budget, false), of_(budget) {}
  bool mayKeep(size_t more) { return makeRoom(more); }
  /// The same for what cannot wait: also of the part that is left to others.
  bool mustKeep(size_t more) const { return !of_ || of_->used() + more <= of_->limit(); }
  void set(size_t amount) { keep(amount); }

 private:
  void giveBack() override {}

  const Budget* of_;
};

/// What the streams of a session hold for their readers, and whose reader is behind most. Each step takes the same time,
/// however many streams there are.
///
/// What comes in order goes before what comes early: it lets a reader go on, and what waits behind it leave. Early bytes
/// find no room that it may need, for they could fill all of it and then wait for ever for what is refused.
class StreamHoldings {
 public:
  /// Both must outlive it.
  StreamHoldings(const StreamOptions& options, PacketPool& pool)
      : options_(options), shared_(options.memory), buffers_(&pool.budget(PacketUse::kHeld)) {}

  /// Bytes of memory, whole buffers.
  size_t bytes() const { return bytes_; }
  /// Much is held: what the peer may send is to grow slowly.
  bool isShort() const { return bytes_ > options_.heldBytes / 2; }
  /// Whether there is room for so many bytes more, one buffer at most, that come in order.
  bool takesNext(size_t more) const {
    return bytes_ + more <= options_.heldBytes && shared_.mustKeep(more) && buffers_.mustKeep(1);
  }
  /// Whether there is for as many that come early.
  bool takesEarly(size_t more) {
    return bytes_ + more <= options_.heldBytes - options_.heldBytes / kReserve && shared_.mayKeep(more) &&
           buffers_.mayKeep(1);
  }
  /// The stream holds more or less than when it was told last.
  void onChange(Stream& stream);
  /// The stream with most bytes that could be read, or nearly so; nullptr: none has any.
  Stream* laziest() const;

 private:
  /// One part in so many of this peer's bound is for bytes in order. Ours.
  static constexpr size_t kReserve = 8;
  /// Those that could read less than 2 KB, 4 KB, ...
  static constexpr size_t kClasses = 24;
  static size_t classOf(size_t bytes) {
    return bytes == 0 ? 0 : std::min<size_t>(std::bit_width(bytes >> 11) + size_t{1}, kClasses - 1);
  }

  const StreamOptions& options_;
  FirmKeeper shared_;
  FirmKeeper buffers_;
  size_t bytes_ = 0;
  size_t packets_ = 0;
  std::array<IntrusiveList<Stream, &Stream::byLag_>, kClasses> byLag_;  ///< the first one is not used
};

}  // namespace braid
