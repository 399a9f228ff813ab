#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid {

/// Tells packet numbers that were received before from new ones: a bitmap that slides by whole words (RFC
/// 6479). Packet numbers are below 2^62.
class ReplayWindow {
 public:
  /// Packet numbers up to so far below the largest can be told apart; older ones count as replayed.
  static constexpr uint64_t kWindow = 4096;

  /// Whether pn may be new. Asked before the seal is opened: changes nothing.
  bool check(uint64_t pn) const;
  /// Notes pn once its seal is known to be good. False, and nothing noted, where check() is false.
  bool commit(uint64_t pn);
  /// The largest committed packet number + 1; 0 before the first.
  uint64_t next() const { return next_; }

 private:
  static constexpr uint64_t kWordBits = 64;
  /// One more than the window fills, so that the word of the largest never holds bits of the oldest.
  static constexpr uint64_t kWords = kWindow / kWordBits + 1;

  uint64_t next_ = 0;
  std::array<uint64_t, kWords> words_{};
};

}  // namespace braid
