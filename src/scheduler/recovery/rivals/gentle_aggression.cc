#include "scheduler/recovery/rivals/gentle_aggression.h"

#include <algorithm>

namespace braid {

std::optional<Protection> Reactive::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle) return std::nullopt;
  if (probed_.size() < view.paths.size()) probed_.resize(view.paths.size(), Time::min());
  deadline_ = kNever;
  std::optional<Protection> probe;
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    const Time lastEvent = std::max(path.newestSent, path.lastAcked);
    if (path.unacked == 0 || path.srtt == Duration{} || probed_[i] == lastEvent) continue;
    const Time due = lastEvent + kProbeRtts * path.srtt;
    if (view.now < due) {
      deadline_ = std::min(deadline_, due);
    } else if (!path.open) {
      deadline_ = std::min(deadline_, path.opensAt);
    } else if (!probe) {
      probed_[i] = lastEvent;
      probe = Protection{.kind = Protection::Kind::kNewest, .of = i, .on = i};
    }
  }
  return probe;
}

Time Corrective::binEnd(const RecoveryPath& path) const {
  const Time byTime = path.oldestUncoded + path.srtt / kPerRtt;
  return path.uncoded >= maxBin_ ? std::min(byTime, path.newestSent) : byTime;
}

std::optional<Protection> Corrective::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle) return std::nullopt;
  deadline_ = kNever;
  std::optional<Protection> parity;
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    if (path.uncoded == 0 || path.srtt == Duration{}) continue;
    const Time end = binEnd(path);
    const Time due = end + path.srtt / kPerRtt;
    if (view.now < due) {
      deadline_ = std::min(deadline_, due);
    } else if (!path.open) {
      deadline_ = std::min(deadline_, path.opensAt);
    } else if (!parity) {
      parity = Protection{.kind = Protection::Kind::kNewBlock,
                          .of = i,
                          .on = i,
                          .symbols = std::min(path.uncoded, maxBin_),
                          .parities = 1,
                          .sentUntil = end};
    }
  }
  return parity;
}

}  // namespace braid
