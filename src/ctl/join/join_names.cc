#include "ctl/join/join_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ctl/client/service.h"
#include "gateway/join/invitation.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/linux/link_resolver.h"
#include "host/linux/loop.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

namespace {

constexpr Duration kPatience = 8s;   // longer than the two tries of a lookup
constexpr Duration kGrace = 500ms;   // for the other interfaces, when each name was found
constexpr Duration kGlance = 100ms;  // how often Ctrl-C is looked for

// The host's own route first, then the interfaces that are up.
std::vector<LookupWay> waysOver(const std::vector<std::string>& interfaces) {
  std::vector<LookupWay> out(1);
  out[0].resolvers = LinkResolverFiles().ofHost().servers;
  NetlinkMonitor monitor;
  for (const std::string& interface : interfaces) {
    UplinkConfig uplink;
    uplink.name = uplink.interface = interface;
    UplinkDecision found = decideUplink(uplink, {}, monitor.table(), {}, {});
    if (!found.up) continue;
    LookupWay& way = out.emplace_back();
    way.uplink = interface;
    way.interface = found.interface;
    way.link = found.link;
    way.v4 = found.v4;
    way.v6 = found.v6;
  }
  // An earlier gateway of this machine may have left its guard.
  for (LookupWay& way : out) way.mark = HostNumbers{}.ownMark();
  return out;
}

// The lookups of some names on several ways.
class Lookups {
 public:
  Lookups(const std::vector<HostPort>& names, std::vector<LookupWay> ways)
      : names_(names), ways_(std::move(ways)) {}

  void run() {
    for (const HostPort& name : names_)
      for (const LookupWay& way : ways_) resolver_.request(way, name);
    end_ = monotonicNow() + kPatience;
    tick();
    loop_.run();
  }
  FoundEndpoints result() const {
    FoundEndpoints out;
    for (const HostPort& name : names_) {
      std::string problem;
      bool isFound = false;
      for (const LookupWay& way : ways_) {
        auto answer = answers_.find({name, way.uplink});
        if (answer == answers_.end()) continue;
        const LookupResult& result = answer->second;
        out.endpoints.insert(out.endpoints.end(), result.found.begin(), result.found.end());
        isFound |= !result.found.empty();
        if (problem.empty()) problem = result.problem;
      }
      if (!isFound) out.problem = name.host + ": " + (problem.empty() ? "no answer" : problem);
    }
    return out;
  }

 private:
  void take(const LookupResult& result) {
    answers_[{result.name, result.uplink}] = result;
    if (answers_.size() == names_.size() * ways_.size()) return loop_.stop();
    if (isEachFound()) end_ = std::min(end_, monotonicNow() + kGrace);
  }
  bool isEachFound() const {
    return std::ranges::all_of(names_, [&](const HostPort& name) {
      return std::ranges::any_of(answers_, [&](const auto& answer) {
        return answer.first.first == name && !answer.second.found.empty();
      });
    });
  }
  void tick() {
    Interruption::check();
    Time now = monotonicNow();
    if (now >= end_) return loop_.stop();
    timer_.arm(std::min(end_, now + kGlance));
  }

  const std::vector<HostPort>& names_;
  std::vector<LookupWay> ways_;
  std::map<std::pair<HostPort, std::string>, LookupResult> answers_;
  Time end_{};
  Loop loop_;
  LinkResolver resolver_{loop_, [this](const LookupResult& result) { take(result); }};
  Timer timer_{loop_, [this] { tick(); }};
};

}  // namespace

FoundEndpoints lookUpNames(const std::vector<HostPort>& addresses,
                           const std::vector<std::string>& interfaces) {
  FoundEndpoints out;
  std::vector<HostPort> names;
  for (const HostPort& address : addresses) {
    if (std::optional<Endpoint> numeric = Endpoint::parse(formatHostPort(address))) {
      out.endpoints.push_back(*numeric);
    } else if (std::ranges::find(names, address) == names.end()) {
      names.push_back(address);
    }
  }
  if (!names.empty()) {
    Lookups lookups(names, waysOver(interfaces));
    lookups.run();
    FoundEndpoints found = lookups.result();
    out.endpoints.insert(out.endpoints.end(), found.endpoints.begin(), found.endpoints.end());
    out.problem = found.problem;
  }
  std::vector<Endpoint> once;
  for (const Endpoint& e : out.endpoints)
    if (std::ranges::find(once, e) == once.end()) once.push_back(e);
  out.endpoints = std::move(once);
  return out;
}

}  // namespace braid
