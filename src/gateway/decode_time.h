#pragma once

#include <cstddef>
#include <string>

#include "gateway/config/config.h"
#include "host/host.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// Measures how long this machine takes to restore 1, 2, ... mMax lost symbols of a block of kMax
/// symbols, counted from the arrival of the first parity, when every symbol that was not lost
/// arrived before it. Each entry is the median of a few runs; entries never decrease; entries above
/// mMax are 0. `symbolSize`: bytes, 1 to 65535. Takes some milliseconds. If it would take long, the
/// times for many losses are extrapolated from the times for fewer losses, by their last step.
decltype(RecoveryOptions::decodeTime) measureDecodeTimes(size_t kMax, size_t mMax,
                                                         size_t symbolSize, const Clock& clock);

/// The configuration with the decode times measured for its blocks. Logs them as well.
Config withDecodeTimes(Config config, const Clock& clock);

/// For the log: "1: 12us, 2: 40us".
std::string decodeTimesText(const RecoveryOptions& options);

}  // namespace braid
