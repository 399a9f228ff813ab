#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "inet/sequence.h"

namespace braid {

/// Where the last few segments of a sender begin: SACK blocks that do not lie on these boundaries are
/// ignored. Their lengths, newest first, count back from the highest byte sent.
class Boundaries {
 public:
  static constexpr size_t kKept = 3;

  void clear() { lengths_ = {}; }
  /// A segment of `length` > 0; `contiguous`: it begins where the last one ended.
  void push(uint32_t length, bool contiguous) {
    if (!contiguous || length > UINT16_MAX) clear();
    if (length > UINT16_MAX) return;
    std::copy_backward(lengths_.begin(), lengths_.end() - 1, lengths_.end());
    lengths_[0] = static_cast<uint16_t>(length);
  }
  /// Of the newest segment, which ends at `nxt`.
  std::optional<Seq> lastBegin(Seq nxt) const {
    if (lengths_[0] == 0) return std::nullopt;
    return Seq{nxt.value - lengths_[0]};
  }
  /// Where the segment behind the one that begins at `una` begins, when both are remembered.
  std::optional<Seq> secondBegin(Seq una, Seq nxt) const {
    Seq at = nxt;
    for (uint16_t length : lengths_) {
      if (length == 0) break;
      Seq begin{at.value - length};
      if (begin == una) return at == nxt ? std::nullopt : std::optional(at);
      at = begin;
    }
    return std::nullopt;
  }

 private:
  std::array<uint16_t, kKept> lengths_{};  // 0: none, nor any after it
};

}  // namespace braid
