#include "scheduler/recovery/corrective.h"

namespace braid {

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
