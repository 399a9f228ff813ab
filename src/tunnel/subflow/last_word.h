#pragma once

#include <cstdint>

namespace braid {

/// The peer's last word on one matter. Each word carries a sequence that grows, so that an older one that
/// arrives late is known.
class LastWord {
 public:
  /// Whether a word with this sequence is news. False: that word, or a later one, came before.
  bool isNews(uint64_t sequence) {
    if (sequence < next_) return false;
    next_ = sequence + 1;
    return true;
  }

 private:
  uint64_t next_ = 0;  ///< the least sequence that is news
};

}  // namespace braid
