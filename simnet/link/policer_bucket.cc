#include "simnet/link/policer_bucket.h"

#include <algorithm>

namespace braid {

bool PolicerBucket::take(size_t bytes, Time now) {
  tokens_ = std::min(size_, tokens_ + toSeconds(now - at_) * rate_);
  at_ = now;
  auto wanted = static_cast<double>(bytes);
  if (wanted > tokens_) return false;
  tokens_ -= wanted;
  return true;
}

}  // namespace braid
