#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tunnel/wire/numbers.h"

namespace braid {

/// Tells packet numbers that were received before from new ones: a bitmap that slides by whole words (RFC
/// 6479). Packet numbers are below 2^62.
class ReplayWindow {
 public:
  /// Packet numbers up to so far below the largest can be told apart; older ones count as replayed.
  static constexpr uint64_t kWindow = 4096;

  /// Whether pn may be new. Asked before the seal is opened: changes nothing.
  bool check(PacketNumber pn) const;
  /// Notes pn once its seal is known to be good. False, and nothing noted, where check() is false.
  bool commit(PacketNumber pn);
  /// The largest committed packet number + 1; 0 before the first.
  PacketNumber next() const { return next_; }

 private:
  static constexpr uint64_t kWordBits = 64;
  /// One more than the window fills, so that the word of the largest never holds bits of the oldest.
  static constexpr uint64_t kWords = kWindow / kWordBits + 1;

  /// The word that holds the bit of `pn`, and that bit.
  static size_t wordOf(PacketNumber pn) { return pn.value() / kWordBits % kWords; }
  static uint64_t bitOf(PacketNumber pn) { return uint64_t{1} << (pn.value() % kWordBits); }

  PacketNumber next_{};
  std::array<uint64_t, kWords> words_{};
};

}  // namespace braid
