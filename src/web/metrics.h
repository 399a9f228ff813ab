#pragma once

#include <string>

#include "base/field.h"
#include "web/answers.h"

namespace braid {

/// The metrics for Prometheus in its text format (version 0.0.4), made from an answer to
/// {"cmd":"status"}. All figures of the tables are there, and their names follow from the tables:
/// `srtt_ms` of a subflow is braid_path_srtt_seconds. Without an answer, braid_up is 0 and nothing
/// else is there.
std::string metricsText(const DaemonAnswer& status);

/// The name of a figure as a metric. `scope`: the kind of object, such as "peer".
std::string metricName(const std::string& scope, const FieldInfo& info);

}  // namespace braid
