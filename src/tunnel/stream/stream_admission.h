#pragma once

// Whether a new stream may begin: how often streams are opened, and which ids the peer has used.
// SessionStreams asks both before it opens or accepts a stream. (session_streams.h says what a
// stream is.)

#include <cstdint>
#include <memory>

#include "base/containers.h"
#include "base/time.h"
#include "tunnel/wire/header.h"

namespace braid {

/// Remembers which stream ids the peer has used, so that a late copy of an opening does not open an
/// ended stream again. Each side numbers its streams upward without gaps, so most ids are below the
/// largest one seen. Openings may overtake each other by less than kWindow streams; the memory is
/// one bit for each of the last kWindow ids.
class StreamIdFilter {
 public:
  static constexpr uint64_t kWindow = 16384;

  enum class Verdict : uint8_t {
    kNew,   ///< it was never recorded
    kSeen,  ///< it was recorded; the stream may have ended
    /// kWindow or more later ids were recorded, so this side does not remember whether this one
    /// was.
    kStale,
  };
  /// `id`: of a stream that the peer has opened, or would.
  Verdict check(StreamId id) const {
    uint64_t n = id.value() / 2;
    if (n >= next_) return Verdict::kNew;
    if (next_ - n > kWindow) return Verdict::kStale;
    return seen_->test(n) ? Verdict::kSeen : Verdict::kNew;
  }
  /// Records an id for which check() says kNew.
  void record(StreamId id) {
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
  uint64_t next_ = 0;                       ///< after the largest that was recorded, as id / 2
};

/// Token buckets for opening streams with one peer. Opening one costs the sender a few bytes, and
/// the receiver a connection of its kernel, some 50 us. They belong to the Peer and not to a
/// session: a new session does not refill them.
///
/// `perSecond`: StreamOptions::newPerSecond, at least 1. A rate limit is {burst, time per token}.
struct StreamRateLimits {
  /// Streams that this side opens: half of what the other side accepts. Connections beyond that
  /// cross the tunnel as packets.
  static constexpr RateLimit own(uint32_t perSecond) {
    return {2 * perSecond, Duration{2s} / perSecond};
  }
  /// Streams of the peer that this side accepts. All streams of a peer that keeps to own() are
  /// accepted, even when those that waited for a path for the repair time (3 s) come at once.
  static constexpr RateLimit ofPeer(uint32_t perSecond) {
    return {4 * perSecond, Duration{1s} / perSecond};
  }
  /// Streams of the peer beyond ofPeer() that are answered by a reset. Those beyond this limit,
  /// too, are not even acknowledged, so the peer sends them again.
  static constexpr RateLimit refusals(uint32_t perSecond) {
    return {perSecond, Duration{1s} / perSecond};
  }

  TokenBucket opened;    ///< of own()
  TokenBucket accepted;  ///< of ofPeer()
  TokenBucket refused;   ///< of refusals()
};

}  // namespace braid
