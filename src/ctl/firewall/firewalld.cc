#include "ctl/firewall/firewalld.h"

#include <netinet/in.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace braid {

namespace {

using Words = std::vector<std::string>;

std::string lineOf(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Empty: none, the default zone is for it.
std::string askForZone(const std::string& interface) {
  return lineOf(runOr({"firewall-cmd", "--get-zone-of-interface=" + interface}, ""));
}

class Plan {
 public:
  explicit Plan(const FirewallTask& task)
      : usual_(lineOf(runOr({"firewall-cmd", "--get-default-zone"}, "public"))),
        zone_(askForZone(task.device)),
        device_(task.device) {
    if (!zone_.empty()) return;
    // Names of zones have 17 characters at most, those of interfaces 15.
    zone_ = "b-" + task.device;
    add({"--new-zone=" + zone_}, {"--delete-zone=" + zone_});
    add({"--zone=" + zone_, "--add-interface=" + task.device},
        {"--zone=" + zone_, "--remove-interface=" + task.device});
  }

  void pass(const PassRule& rule) {
    bool isOut = rule.out == device_;
    std::string policy = policyFor(isOut, zoneOf(isOut ? rule.in : rule.out));
    add({"--policy=" + policy, "--add-rich-rule=" + richRule(rule)}, {});
  }

  void listen(const PassRule& rule, const std::string& interface) {
    std::string zone = askForZone(interface), port = std::to_string(rule.firstPort) + "/" +
                                                     (rule.protocol == IPPROTO_TCP ? "tcp" : "udp");
    if (zone.empty()) zone = usual_;
    add({"--zone=" + zone, "--add-port=" + port}, {"--zone=" + zone, "--remove-port=" + port});
  }

  std::vector<FirewallStep> take() {
    for (FirewallStep& step : steps_) step.finish = {"firewall-cmd", "--reload"};
    return std::move(steps_);
  }

 private:
  // A policy holds for the interfaces that its zones name. To name an interface that is in the
  // default zone unnamed would let others of that zone forward to it (zones have `forward`).
  static std::string zoneOf(const std::string& interface) {
    std::string zone = askForZone(interface);
    return zone.empty() ? "ANY" : zone;
  }

  // One policy for each direction and zone: packets from the zone to the tunnel, and back.
  std::string policyFor(bool isOut, const std::string& other) {
    auto [known, isNew] = policies_.try_emplace({isOut, other});
    if (!isNew) return known->second;
    std::string& name = known->second;
    name = (isOut ? "b" : "B") + std::to_string(policies_.size()) + device_;
    add({"--new-policy=" + name}, {"--delete-policy=" + name});
    add({"--policy=" + name, "--add-ingress-zone=" + (isOut ? other : zone_)}, {});
    add({"--policy=" + name, "--add-egress-zone=" + (isOut ? zone_ : other)}, {});
    return name;
  }

  // What a policy or a zone has is removed with it, and needs no undoing.
  void add(const Words& run, const Words& undo) {
    FirewallStep step;
    step.run = {"firewall-cmd", "--permanent"};
    step.run.insert(step.run.end(), run.begin(), run.end());
    if (!undo.empty()) {
      step.undo = {"firewall-cmd", "--permanent"};
      step.undo.insert(step.undo.end(), undo.begin(), undo.end());
    }
    if (std::ranges::find(steps_, step) == steps_.end()) steps_.push_back(std::move(step));
  }

  std::string usual_, zone_, device_;
  std::map<std::pair<bool, std::string>, std::string> policies_;
  std::vector<FirewallStep> steps_;
};

}  // namespace

std::string richRule(const PassRule& rule) {
  bool v4 = rule.family == Address::Family::kV4;
  std::string any = v4 ? "0.0.0.0/0" : "::/0", out = "rule family=\"";
  out += v4 ? "ipv4\"" : "ipv6\"";
  if (rule.source || !rule.destination)
    out += " source address=\"" + (rule.source ? rule.source->toString() : any) + "\"";
  if (rule.destination) out += " destination address=\"" + rule.destination->toString() + "\"";
  if (rule.firstPort != 0) {
    out += " port port=\"" + std::to_string(rule.firstPort);
    if (rule.lastPort > rule.firstPort) out += "-" + std::to_string(rule.lastPort);
    out += rule.protocol == IPPROTO_TCP ? "\" protocol=\"tcp\"" : "\" protocol=\"udp\"";
  }
  return out + " accept";
}

std::vector<FirewallStep> firewalldSteps(const std::vector<Obstacle>& obstacles,
                                         const FirewallTask& task) {
  Plan plan(task);
  for (const Obstacle& obstacle : obstacles) {
    const Opening& opening = obstacle.opening;
    // firewalld lets answers through by itself.
    if (opening.rule.isForAnswers || !canOpen(FirewallProgram::kFirewalld, opening)) continue;
    if (opening.rule.hook == NftPacket::Hook::kInput) {
      plan.listen(opening.rule, opening.samples.front().in);
    } else {
      plan.pass(opening.rule);
    }
  }
  return plan.take();
}

}  // namespace braid
