#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/firewall/firewall.h"
#include "ctl/join/fleet.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/join/other_tunnels.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"

namespace braid {

namespace {

nlohmann::json jsonOf(const ConfigError& e) {
  return {{"file", e.file}, {"line", e.line},       {"column", e.column},
          {"key", e.key},   {"problem", e.problem}, {"remedy", e.remedy}};
}

nlohmann::json jsonOf(const ConfigErrors& errors) {
  nlohmann::json out = nlohmann::json::array();
  for (const ConfigError& e : errors) out.push_back(jsonOf(e));
  return out;
}

}  // namespace

bool check(const std::string& file, bool json, std::ostream& out) {
  ConfigResult result = loadConfig(file);
  const auto* errors = std::get_if<ConfigErrors>(&result);
  const auto* config = std::get_if<Config>(&result);
  if (json) {
    nlohmann::json answer{{"file", file}, {"mistakes", jsonOf(errors ? *errors : ConfigErrors{})}};
    if (config) {
      answer["warnings"] = jsonOf(config->warnings);
      answer["firewall"] = firewallWarnings(file, *config);
      answer["other_tunnels"] = otherTunnelsWarnings(*config);
      answer["uplinks"] = config->uplinks.size();
      answer["listening"] = config->listen.size();
      answer["peers"] = config->peers.size();
    }
    out << prettyJson(answer);
    return config != nullptr;
  }
  if (errors) throw std::runtime_error(problemsOf(result));
  for (const ConfigError& warning : config->warnings)
    out << "warning: " << warning.toString() << '\n';
  for (const std::string& warning : firewallWarnings(file, *config))
    out << "warning: this host's firewall: " << printable(warning) << '\n';
  for (const std::string& warning : otherTunnelsWarnings(*config))
    out << "warning: " << printable(warning) << '\n';
  out << file << ": no mistakes; uplinks " << config->uplinks.size() << ", listening "
      << config->listen.size() << ", peers " << config->peers.size() << '\n';
  return true;
}

bool checkFleet(const std::string& folder, bool json, std::ostream& out) {
  Fleet fleet = readFleet(folder);
  std::vector<FleetFinding> findings = checkFleet(fleet);
  auto errors = static_cast<size_t>(std::count_if(
      findings.begin(), findings.end(),
      [](const FleetFinding& f) { return f.severity == FleetFinding::Severity::kError; }));
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const FleetFinding& f : findings) {
      all.push_back(jsonOf(f.what));
      all.back()["severity"] = f.severity == FleetFinding::Severity::kError ? "error" : "warning";
    }
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
