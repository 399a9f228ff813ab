#include "scheduler/path/path_scheduler.h"

#include "scheduler/path/earliest.h"
#include "scheduler/path/ecf.h"
#include "scheduler/path/min_rtt.h"
#include "scheduler/path/weighted.h"

namespace braid {

std::unique_ptr<PathScheduler> makePathScheduler(std::string_view name) {
  if (name == "earliest") return std::make_unique<Earliest>();
  if (name == "minrtt") return std::make_unique<MinRtt>();
  if (name == "ecf") return std::make_unique<Ecf>();
  if (name == "weighted") return std::make_unique<Weighted>();
  return nullptr;
}

}  // namespace braid
