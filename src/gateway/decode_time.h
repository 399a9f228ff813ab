#pragma once

#include <cstddef>
#include <string>

#include "gateway/config/config.h"
#include "host/clock.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// How long this machine takes to restore 1, 2, ... mMax lost symbols of a block of kMax: from the first
/// parity's arrival, as if all symbols that were not lost had come before. Medians of a few runs, made
/// rising; entries above mMax are 0. `symbolSize`: bytes, 1 to 65535. Takes some milliseconds; where it would take long, the
/// times for many losses are concluded from those for fewer, by the last step.
decltype(RecoveryOptions::decodeTime) measureDecodeTimes(size_t kMax, size_t mMax, size_t symbolSize,
                                                         const Clock& clock);

/// The configuration with the times that were measured for its blocks, which are logged as well.
Config withDecodeTimes(Config config, const Clock& clock);

/// "1: 12us, 2: 40us" for the log.
std::string decodeTimesText(const RecoveryOptions& options);

}  // namespace braid
