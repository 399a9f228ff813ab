#include "gateway/network/network_reconciler.h"

#include <algorithm>

namespace braid {

namespace {

/// The first few items, and how many more there are.
std::string listed(const std::vector<std::string>& items) {
  constexpr size_t kMost = 4;
  std::string out;
  for (size_t i = 0; i < std::min(items.size(), kMost); ++i) out += (i ? ", " : "") + items[i];
  if (items.size() > kMost) out += " and " + std::to_string(items.size() - kMost) + " more";
  return out;
}

}  // namespace

void NetworkReconciler::suspect(Time now) {
  deadline_ = std::min(deadline_, std::max(now + kSettle, earliest_));
}

void NetworkReconciler::onTimer(Time now) {
  if (now < deadline_) return;
  HostNetwork::Restored restored = network_.restore();
  if (!restored.back.empty())
    log_.warn(LogKind::kNetwork, now,
              "was gone from the host, and is put back: " + listed(restored.back));
  if (!restored.failed.empty())
    log_.warn(LogKind::kNetwork, now,
              "is gone from the host, and cannot be put back: " + listed(restored.failed));
  pause_ = restored.failed.empty() ? kPause : std::min<Duration>(2 * pause_, kLongestPause);
  earliest_ = now + kPause;  // what cannot be restored does not delay anything else
  deadline_ = restored.failed.empty() ? kNever : now + pause_;
}

}  // namespace braid
