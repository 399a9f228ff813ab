#include "scheduler/recovery/recovery.h"

#include <algorithm>

#include "scheduler/recovery/adaptive.h"
#include "scheduler/recovery/cofuso.h"
#include "scheduler/recovery/fuso.h"
#include "scheduler/recovery/rivals/gentle_aggression.h"

namespace braid {

double lossMetric(const RecoveryPath& path, double overallWeight, double lastWeight) {
  if (path.lost == 0 || path.sent == 0) return 0;
  const double overall =
      std::min(static_cast<double>(path.lost) / static_cast<double>(path.sent), 1.0);
  const double last = path.sinceLoss == 0 ? 0 : 1 / static_cast<double>(path.sinceLoss);
  return overallWeight * overall + lastWeight * last;
}

size_t maxParities(const RecoveryOptions& options, Duration rtt) {
  size_t m = std::clamp<size_t>(options.mMax, 1, options.decodeTime.size());
  auto tooSlow = [&](Duration decodeTime) {
    return decodeTime > Duration{} && decodeTime >= rtt / 4;
  };
  while (m > 1 && tooSlow(options.decodeTime[m - 1])) --m;
  return m;
}

std::unique_ptr<RecoveryPolicy> makeRecoveryPolicy(std::string_view name,
                                                   const RecoveryOptions& options, uint64_t seed) {
  if (name == "none") return std::make_unique<NoRecovery>();
  if (name == "fuso") return std::make_unique<Fuso>(options, seed);
  if (name == "cofuso") return std::make_unique<CoFuso>(options, seed);
  if (name == "redundant") return std::make_unique<Redundant>();
  if (name == "proactive") return std::make_unique<Proactive>();
  if (name == "reactive") return std::make_unique<Reactive>();
  if (name == "corrective") return std::make_unique<Corrective>(options);
  if (name == "adaptive") return std::make_unique<Adaptive>(options);
  return nullptr;
}

}  // namespace braid
