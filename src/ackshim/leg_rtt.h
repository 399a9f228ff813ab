#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// Smoothed round-trip time and its variation in 8 bytes (RFC 6298 section 2; gains 1/8 and 1/4).
class LegRtt {
 public:
  void onSample(Duration sample) {
    auto us = static_cast<uint32_t>(std::clamp<int64_t>(sample / 1us, 1, kMax));
    if (srtt_ == 0) {
      srtt_ = us;
      variation_ = us / 2;
      return;
    }
    uint32_t error = us > srtt_ ? us - srtt_ : srtt_ - us;
    variation_ = (3 * variation_ + error) / 4;
    srtt_ = std::max(1u, (7 * srtt_ + us) / 8);
  }
  bool hasSample() const { return srtt_ != 0; }
  /// 0 before the first sample.
  Duration smoothed() const { return 1us * srtt_; }
  Duration variation() const { return 1us * variation_; }
  /// How long an answer may take: RFC 6298 section 2.3, no less than twice the RTT.
  Duration patience() const { return 1us * std::max(srtt_ + 4 * variation_, 2 * srtt_); }

 private:
  static constexpr int64_t kMax = 60'000'000;  // a minute: no overflow in the sums
  uint32_t srtt_ = 0;
  uint32_t variation_ = 0;
};

}  // namespace braid
