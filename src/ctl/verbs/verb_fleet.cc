#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/join/cli_join.h"
#include "ctl/join/fleet.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/fields.h"
#include "gateway/config/units.h"
#include "gateway/control/requests.h"
#include "gateway/join/invitation.h"

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
  auto errors = static_cast<size_t>(std::count_if(
      findings.begin(), findings.end(),
      [](const FleetFinding& f) { return f.severity == FleetFinding::Severity::kError; }));
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

void invite(const InviteOptions& options, std::ostream& out, std::ostream& err) {
  std::optional<Duration> lifetime = parseDuration(options.validFor);
  if (!lifetime || *lifetime < InviteRequest::kShortest || *lifetime > InviteRequest::kLongest)
    throw std::runtime_error("--valid-for must be a time from 1min to 30d, such as 2h");
  nlohmann::json answer = askWith(findSocket(options.socket), "invite",
                                  {{"name", options.name},
                                   {"addresses", options.addresses},
                                   {"networks", options.networks},
                                   {"seconds", static_cast<uint64_t>(*lifetime / 1s)}});
  std::string line = textOf(answer, "line");
  auto parsed = parseInvitation(line);
  auto* invitation = std::get_if<Invitation>(&parsed);
  if (!invitation)
    throw std::runtime_error("the daemon gives no invitation; is it of another release?");
  if (options.json) {
    answer["expires_unix_s"] = invitation->expires;
    out << prettyJson(answer);
    return;
  }
  out << line << '\n';
  err << "Good for one gateway, until " << formatUtc(invitation->expires)
      << ". At that gateway run 'braidctl join' and paste the line: it is a secret.\n";
  std::string note =
      answer.value("note", nlohmann::json()).is_string() ? textOf(answer, "note") : "";
  if (!note.empty()) err << "Note: " << note << "\n";
}

}  // namespace braid
