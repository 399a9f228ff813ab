#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// When the initiator of a session makes a handshake beside it for fresh keys.
class Renewals {
 public:
  /// Pause after one that failed; doubles up to the longest. Ours: longer than a handshake may take.
  static constexpr Duration kFirstPause = 15s;
  static constexpr Duration kLongestPause = 5min;

  /// `random` must outlive it.
  explicit Renewals(SecretRandom& random) : random_(random) { plan(); }

  /// For keys that came then and are to be renewed after that time, or up to a quarter of it earlier: gateways that
  /// began together drift apart. kNever for 0.
  Time dueAt(Time renewedAt, Duration after) const {
    if (after == Duration{}) return kNever;
    return std::max(renewedAt + after - after / 4 * early_ / kParts, notBefore_);
  }
  /// A handshake is done.
  void onHandshake() {
    notBefore_ = Time::min();
    pause_ = kFirstPause;
    plan();
  }
  /// It came to nothing.
  void onFailed(Time now) {
    ++failed_;
    notBefore_ = now + pause_;
    pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
  }
  uint64_t failed() const { return failed_; }

 private:
  static constexpr int kParts = 256;
  void plan() { early_ = static_cast<int>(random_.below(kParts)); }

  SecretRandom& random_;
  int early_ = 0;  ///< of kParts
  Time notBefore_ = Time::min();
  Duration pause_ = kFirstPause;
  uint64_t failed_ = 0;
};

}  // namespace braid
