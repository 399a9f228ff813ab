#pragma once

#include <cstdint>
#include <memory>

#include "base/containers.h"
#include "base/rate_limit.h"
#include "tunnel/wire/header.h"

namespace braid {

/// Remembers which streams the other side has opened. It numbers its streams upward from the first.
/// Openings may overtake each other by less than kWindow streams.
class StreamIdFilter {
 public:
  static constexpr uint64_t kWindow = 16384;

  enum class Verdict : uint8_t {
    kNew,
    kSeen,  ///< it was opened before, and may have ended
    /// Possibly opened: kWindow or more later ones were, so this side does not remember it.
    kStale,
  };
  Verdict look(StreamId id) const {
    uint64_t n = id.value() / 2;
    if (n >= next_) return Verdict::kNew;
    if (next_ - n > kWindow) return Verdict::kStale;
    return seen_->test(n) ? Verdict::kSeen : Verdict::kNew;
  }
  /// Records the opening of a stream that is kNew.
  void mark(StreamId id) {
    uint64_t n = id.value() / 2;
    if (!seen_) seen_ = std::make_unique<BitRing<kWindow>>();
    if (n >= next_) {
      uint64_t passed = n + 1 - next_;
      if (passed >= kWindow) {
        seen_->clearAll();
      } else {
        seen_->clear(next_, passed);
      }
      next_ = n + 1;
    }
    seen_->set(n);
  }

 private:
  std::unique_ptr<BitRing<kWindow>> seen_;  ///< allocated with the first stream
  uint64_t next_ = 0;                       ///< after the largest that was opened, as StreamId / 2
};

/// Rate limits for opening streams with a peer. Opening one costs the peer a few bytes, and this
/// side a connection of its kernel. The token buckets belong to the peer and not to a session: a
/// new session does not refill them.
///
/// `perSecond`: StreamOptions::newPerSecond, at least 1.
struct StreamRateLimits {
  /// Streams that this side opens; connections beyond this limit stay packets.
  static constexpr RateLimit own(uint32_t perSecond) {
    return {2 * perSecond, Duration{2s} / perSecond};
  }
  /// Streams of the peer that this side accepts. All streams of a peer that keeps to own() are
  /// accepted, even when those that waited for a path for the repair time (3 s) come at once.
  static constexpr RateLimit ofPeer(uint32_t perSecond) {
    return {4 * perSecond, Duration{1s} / perSecond};
  }
  /// Streams of the peer beyond ofPeer() that are answered by a reset. Streams beyond this limit,
  /// too, are not even acknowledged, so the peer sends them again.
  static constexpr RateLimit refusals(uint32_t perSecond) {
    return {perSecond, Duration{1s} / perSecond};
  }

  TokenBucket opened, taken, refused;
};

}  // namespace braid
