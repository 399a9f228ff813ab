#pragma once

#include <cstdint>
#include <memory>

#include "base/bit_ring.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Which streams the other side has begun. It counts its own up from the first; openings may overtake each other by
/// less than kWindow streams.
class StreamIds {
 public:
  static constexpr uint64_t kWindow = 16384;

  enum class Verdict : uint8_t {
    kNew,
    kSeen,   ///< it was begun, whatever became of it
    kStale,  ///< it may have been begun: so many others were since that this side has forgotten
  };
  Verdict look(StreamId id) const {
    uint64_t n = id.value() / 2;
    if (n >= next_) return Verdict::kNew;
    if (next_ - n > kWindow) return Verdict::kStale;
    return seen_->test(n) ? Verdict::kSeen : Verdict::kNew;
  }
  /// A stream begins that is kNew.
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
  std::unique_ptr<BitRing<kWindow>> seen_;  ///< from the first one on
  uint64_t next_ = 0;                       ///< behind the largest that was begun, in pairs
};

}  // namespace braid
