#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/budget.h"
#include "base/packet.h"
#include "tunnel/lane/stream.h"
#include "tunnel/lane/stream_options.h"

namespace braid {

/// A part of a budget whose keeper asks before it keeps more.
class FirmKeeper final : public Keeper {
 public:
  /// `giveBack`: gives some of it back, when others need it; none: it cannot.
  explicit FirmKeeper(Budget* budget, std::function<void()> giveBack = {})
      : Keeper(budget, giveBack != nullptr), giveBack_(std::move(giveBack)) {}
  bool mayKeep(size_t more) { return makeRoom(more); }
  /// The same for what cannot wait: also of the part that is left to others.
  bool mustKeep(size_t more) { return makeRoom(more, true); }
  void set(size_t amount) {
    isSetting_ = true;
    keep(amount);
    isSetting_ = false;
  }

 private:
  // Not from inside of set(): who calls that is busy with what would go.
  void giveBack() override {
    if (!isSetting_) giveBack_();
  }

  std::function<void()> giveBack_;
  bool isSetting_ = false;
};

/// What the streams of a session hold for their readers, and whose reader is behind most. Each step takes the same time,
/// however many streams there are.
///
/// What comes in order goes before what comes early: it lets a reader go on, and what waits behind it leave. Early bytes
/// find no room that it may need, for they could fill all of it and then wait for ever for what is refused.
class StreamHoldings {
 public:
  /// Both must outlive it. `giveWay`: ends laziest(), if there is one: another session needs memory, and this one holds
  /// most of it.
  StreamHoldings(const StreamOptions& options, PacketPool& pool, const std::function<void()>& giveWay)
      : options_(options),
        shared_(options.memory, giveWay),
        buffers_(&pool.budget(PacketUse::kHeld), giveWay) {}

  /// Bytes of memory: whole buffers, and what keeps them in order.
  size_t bytes() const { return bytes_; }
  /// Much is held: what the peer may send is to grow slowly.
  bool isShort() const { return bytes_ > options_.heldBytes / 2; }
  /// Whether there is room for so many bytes more, one buffer at most and what keeps it, that come in order.
  bool takesNext(size_t more) {
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
