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
  earliest_ = now + (restored.back.empty() ? kPause : pauseAfterLoss(now));
  deadline_ = restored.failed.empty() ? kNever : now + pause_;  // and delays nothing else
}

// How long to wait after something was restored.
Duration NetworkReconciler::pauseAfterLoss(Time now) {
  bool soon = lastLoss_ != Time::min() && now - lastLoss_ < kContest + contest_;
  lastLoss_ = now;
  losses_ = soon ? losses_ + 1 : 1;
  if (losses_ < kRounds) return contest_ = kPause;
  contest_ = std::min<Duration>(2 * contest_, kLongestPause);
  log_.warn(LogKind::kNetwork, now,
            "another program takes it away again and again: it is put back in " +
                std::to_string(contest_ / 1s) + " s at the earliest");
  return contest_;
}

}  // namespace braid
