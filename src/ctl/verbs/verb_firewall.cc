#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/firewall/firewall.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"

namespace braid {

namespace {

nlohmann::json stepsJson(const std::vector<FirewallStep>& steps) {
  nlohmann::json out = nlohmann::json::array();
  for (const FirewallStep& step : steps) {
    if (step.file.empty()) {
      out.push_back({{"command", step.run}});
    } else {
      out.push_back({{"file", step.file}, {"text", step.text}});
    }
  }
  return out;
}

nlohmann::json stateJson(const FirewallState& state) {
  nlohmann::json parts = nlohmann::json::array();
  for (const FirewallState::Part& part : state.parts) {
    nlohmann::json dropped = nlohmann::json::array();
    for (const Obstacle& obstacle : part.obstacles)
      dropped.push_back({{"what", obstacle.opening.toString()},
                         {"by", obstacle.drop.toString()},
                         {"why", consequenceOf(obstacle)}});
    parts.push_back({{"program", nameOf(part.program)},
                     {"dropped", dropped},
                     {"steps", stepsJson(part.steps)}});
  }
  return {{"dropped", parts}, {"unread", state.unread}};
}

bool isDropped(const FirewallState& state) {
  for (const FirewallState::Part& part : state.parts) {
    for (const Obstacle& obstacle : part.obstacles)
      if (canOpen(part.program, obstacle.opening)) return true;
  }
  return false;
}

void writeState(const FirewallState& state, const char* lead, std::ostream& out) {
  for (const FirewallState::Part& part : state.parts) {
    for (const Obstacle& obstacle : part.obstacles)
      out << printable(obstacle.opening.toString() + ": dropped by " + obstacle.drop.toString() +
                       " (" + nameOf(part.program) + "); " + consequenceOf(obstacle))
          << '\n';
    if (!part.steps.empty()) out << lead << '\n';
    for (const FirewallStep& step : part.steps) out << "  " << toText(step);
    std::string finish;
    for (const FirewallStep& step : part.steps)
      if (!step.finish.empty()) finish = shellText(step.finish);
    if (!finish.empty()) out << "  " << finish << '\n';
  }
  for (const std::string& unread : state.unread) out << unread << '\n';
}

}  // namespace

bool showFirewall(const std::string& file, bool json, std::ostream& out) {
  FirewallState state = lookAtFirewall(file, readConfig(file));
  if (json) {
    nlohmann::json answer = stateJson(state);
    answer["file"] = file;
    out << prettyJson(answer);
    return !isDropped(state);
  }
  writeState(state, "what lets them through:", out);
  if (state.parts.empty()) out << "nothing of nf_tables is known to drop what must pass\n";
  return !isDropped(state);
}

bool allowFirewall(const std::string& file, bool intoChains, bool json, std::ostream& out) {
  FirewallChange change = allowInFirewall({file, intoChains}, readConfig(file));
  if (json) {
    nlohmann::json answer = stateJson(change.left);
    answer["file"] = file;
    answer["done"] = stepsJson(change.done);
    answer["not_taken_back"] = change.problems;
    out << prettyJson(answer);
    return !isDropped(change.left);
  }
  for (const std::string& problem : change.problems)
    out << "an earlier change is not taken back: " << printable(problem) << '\n';
  for (const FirewallStep& step : change.done) out << "done: " << toText(step);
  if (change.done.empty() && !isDropped(change.left)) out << "nothing has to be let through\n";
  writeState(change.left, "do this by hand, or with --into-chains:", out);
  return !isDropped(change.left);
}

void removeFirewall(const std::string& file, bool json, std::ostream& out) {
  bool any = removeFromFirewall(file);
  if (json) {
    nlohmann::json answer{{"file", file}, {"removed", any}};
    out << prettyJson(answer);
    return;
  }
  out << (any ? "what 'braidctl firewall allow' did is taken back\n"
              : "'braidctl firewall allow' has changed nothing here\n");
}

}  // namespace braid
