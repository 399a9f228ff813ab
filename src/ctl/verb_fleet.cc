#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/fields.h"
#include "ctl/fleet.h"
#include "ctl/verbs.h"

namespace braid {

namespace {

nlohmann::json jsonOf(const FleetFinding& finding) {
  const ConfigError& e = finding.what;
  return {{"severity", finding.severity == FleetFinding::Severity::kError ? "error" : "warning"},
          {"file", e.file},
          {"line", e.line},
          {"column", e.column},
          {"key", e.key},
          {"problem", e.problem},
          {"remedy", e.remedy}};
}

}  // namespace

bool checkFleet(const std::string& folder, bool json, std::ostream& out) {
  Fleet fleet = readFleet(folder);
  std::vector<FleetFinding> findings = checkFleet(fleet);
  auto errors =
      static_cast<size_t>(std::count_if(findings.begin(), findings.end(), [](const FleetFinding& f) {
        return f.severity == FleetFinding::Severity::kError;
      }));
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const FleetFinding& f : findings) all.push_back(jsonOf(f));
    nlohmann::json answer = {{"ok", errors == 0}, {"gateways", fleet.files}, {"findings", all}};
    out << prettyJson(answer);
    return errors == 0;
  }
  for (const FleetFinding& f : findings) out << f.toString() << '\n';
  out << folder << ": gateways " << fleet.files << ", errors " << errors << ", warnings "
      << findings.size() - errors << '\n';
  return errors == 0;
}

}  // namespace braid
