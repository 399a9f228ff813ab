#pragma once

#include <bitset>
#include <cstdint>

namespace braid {

/// Remembers which of the last kWindow block ids are done with. Ids count up modulo 2^16; one that is up to
/// 2^15 ahead of the newest is newer.
class ClosedBlocks {
 public:
  /// How far an id may lag behind the newest (ours: blocks come in order but for the difference of the paths'
  /// delays).
  static constexpr uint16_t kWindow = 1024;

  /// Older than the window, or closed before.
  bool closed(uint16_t id) const { return tooOld(id) || (!isNewer(id) && closed_[id % kWindow]); }
  /// Behind the window.
  bool tooOld(uint16_t id) const { return !isNewer(id) && static_cast<uint16_t>(newest_ - id) >= kWindow; }
  /// A block of this id has come. True when it is the newest.
  bool advance(uint16_t id) {
    if (!isNewer(id)) return false;
    const uint16_t steps = any_ ? static_cast<uint16_t>(id - newest_) : kWindow;
    if (steps >= kWindow) {
      closed_.reset();
    } else {
      for (uint16_t i = 0; i < steps; ++i) closed_[static_cast<uint16_t>(id - i) % kWindow] = false;
    }
    newest_ = id;
    any_ = true;
    return true;
  }
  /// Marks an id that advance() has seen.
  void close(uint16_t id) {
    if (!tooOld(id)) closed_[id % kWindow] = true;
  }

 private:
  bool isNewer(uint16_t id) const {
    const auto ahead = static_cast<uint16_t>(id - newest_);
    return !any_ || (ahead != 0 && ahead < 0x8000);
  }
  bool any_ = false;
  uint16_t newest_ = 0;
  std::bitset<kWindow> closed_;
};

}  // namespace braid
