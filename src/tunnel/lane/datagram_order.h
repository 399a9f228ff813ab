#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "inet/datagram_sign.h"

namespace braid {

/// Finds out whether a flow of datagrams wants order: by the first packets, or because it behaves as bulk. That is
/// decided once; a flow that asked to be timely stays so. The packet lane alone writes it.
class DatagramOrder {
 public:
  /// A packet of that size is a full one. Ours: bulk senders fill theirs, games and voice do not.
  static constexpr size_t kFull = 1000;
  /// Full packets of more than 6 Mbit/s in each of two windows on end are bulk. Ours: a video call has less.
  static constexpr Duration kWindow = 500ms;
  static constexpr size_t kBulk = 375'000;
  static constexpr unsigned kWindows = 2;

  /// A packet of the flow is queued. True at the one packet from which on the flow is ordered.
  bool onPacket(size_t size, DatagramSign sign, Time now) {
    if (decided_) return false;
    if (opening_ && sign != DatagramSign::kSetup) {
      opening_ = false;
      decided_ = sign == DatagramSign::kOrdered || sign == DatagramSign::kTimely;
      if (decided_) return sign == DatagramSign::kOrdered;
    }
    return decided_ = size >= kFull && isBulk(size, now);
  }

 private:
  bool isBulk(size_t size, Time now) {
    if (Duration age = now - since_; age >= kWindow) {
      fullWindows_ = age < 2 * kWindow && bytes_ > kBulk ? fullWindows_ + 1 : 0;
      since_ = now;
      bytes_ = 0;
    }
    bytes_ += size;
    return bytes_ > kBulk && fullWindows_ + 1 >= kWindows;
  }

  bool opening_ = true;   // no packet yet that says anything
  bool decided_ = false;  // for the life of the flow
  unsigned fullWindows_ = 0;
  size_t bytes_ = 0;  // of full datagrams, in this window
  Time since_{};      // of this window
};

}  // namespace braid
