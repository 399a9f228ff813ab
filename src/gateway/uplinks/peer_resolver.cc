#include "gateway/uplinks/peer_resolver.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

namespace braid {

namespace {

constexpr Duration kRetry = 30s;
// Chosen: longer than the handshakes of a slow path take.
constexpr Duration kTrial = 10s;

std::string textOf(const std::vector<Endpoint>& endpoints) {
  std::string out;
  for (const Endpoint& e : endpoints) out += (out.empty() ? "" : ", ") + e.address.toString();
  return out;
}

void addNew(std::vector<Endpoint>& to, const std::vector<Endpoint>& more) {
  for (const Endpoint& e : more) {
    if (std::find(to.begin(), to.end(), e) == to.end()) to.push_back(e);
  }
}

}  // namespace

PeerResolver::PeerResolver(Host& host, LogLimiter& log, std::function<void()> onChange)
    : clock_(host.clock()),
      log_(log),
      onChange_(std::move(onChange)),
      resolver_(host.openResolver([this](const LookupResult& result) { onResult(result); })) {}

void PeerResolver::resolve(const std::vector<PeerConfig>& peers, const std::vector<LookupWay>& ways,
                           const WorkingPaths& working, bool all) {
  begun_ = true;
  if (!std::exchange(failed_, false)) pause_ = kFirstPause;
  std::vector<std::string> before = std::exchange(uplinks_, {});
  for (const LookupWay& way : ways) uplinks_.push_back(way.uplink);
  bool changed = uplinks_ != before, incomplete = false;
  std::vector<std::pair<const LookupWay*, HostPort>> wanted;
  for (const PeerConfig& p : peers) {
    for (const HostPort& name : p.hosts) {
      Answers& answers = found_[name];
      incomplete |= ways.empty();
      for (const LookupWay& way : ways)
        answers[way.uplink].works = working.has(p.options.name, way.uplink);
      for (const LookupWay& way : ways) {
        Answer& known = answers[way.uplink];
        bool tried = !known.found.empty() && clock_.now() >= known.since + kTrial;
        if (known.works && !known.doubted) known.good = known.found;
        if (!known.works && tried && !known.doubted) {
          changed = known.doubted = true;
          notePortal(name, answers, way.uplink);
        }
        if (all || !known.works || known.found.empty()) wanted.emplace_back(&way, name);
      }
    }
  }
  deadline_ = wanted.empty() && !incomplete ? kNever : clock_.now() + kRetry;
  if (changed) onChange_();
  for (const auto& [way, name] : wanted) resolver_->request(*way, name);
}

void PeerResolver::retryLater() {
  if (deadline_ == kNever && begun_) deadline_ = clock_.now() + kRetry;
}

void PeerResolver::retryNow() {
  pause_ = kFirstPause;
  if (begun_) deadline_ = clock_.now();
}

// Counts once per resolve(), however many names fail.
void PeerResolver::noteFailure() {
  if (std::exchange(failed_, true)) return;
  deadline_ = std::min(deadline_, clock_.now() + pause_);
  pause_ = std::min(2 * pause_, kRetry);
}

void PeerResolver::onResult(const LookupResult& result) {
  bool askedHere = asksHere();
  asked_[result.uplink] = result.asked;
  if (asksHere() != askedHere) onChange_();
  Answer& known = found_[result.name][result.uplink];
  if (result.found.empty()) {
    noteFailure();
    return log_.warn(LogKind::kResolver, clock_.now(),
                     "cannot resolve " + result.name.host + " over " + result.uplink + ": " +
                         result.problem + "; will try again");
  }
  if (known.found == result.found) return;
  // A path that another uplink's answer made possible stays.
  known.doubted = known.found.empty() && known.works;
  known.found = result.found;
  known.since = clock_.now();
  spdlog::info("{} is {} over {}", result.name.host, textOf(result.found), result.uplink);
  onChange_();
}

// A name server that lies is known by an answer that leads nowhere, where another one leads to the
// peer: over another uplink now, or over this one before.
void PeerResolver::notePortal(const HostPort& name, const Answers& answers,
                              const std::string& uplink) {
  const Answer& own = answers.at(uplink);
  std::vector<Endpoint> right = own.good;
  for (const auto& [other, answer] : answers) {
    if (other != uplink && answer.works && !answer.doubted) addNew(right, answer.found);
  }
  bool differs = !right.empty() && std::ranges::none_of(own.found, [&](const Endpoint& e) {
    return std::ranges::find(right, e) != right.end();
  });
  if (!differs) return;
  portals_.push_back({uplink, "uplink " + uplink + ": its name servers say that " + name.host +
                                  " is " + textOf(own.found) + ", where nobody answers, and not " +
                                  textOf(right) +
                                  ": a captive portal that waits for a login, or a filter"});
}

std::vector<Endpoint> PeerResolver::ofOthers(const Answers& answers,
                                             const std::string& uplink) const {
  std::vector<Endpoint> out;
  for (const auto& [other, answer] : answers) {
    if (other != uplink) addNew(out, answer.found);
  }
  return out;
}

std::vector<PeerOptions> PeerResolver::peers(const std::vector<PeerConfig>& peers) const {
  std::vector<PeerOptions> out;
  for (const PeerConfig& p : peers) {
    PeerOptions& options = out.emplace_back(p.options);
    for (const HostPort& name : p.hosts) {
      auto known = found_.find(name);
      if (known == found_.end()) continue;
      std::set<std::string> uplinks(uplinks_.begin(), uplinks_.end());
      for (const auto& [uplink, answer] : known->second) uplinks.insert(uplink);
      for (const std::string& uplink : uplinks) {
        auto answer = known->second.find(uplink);
        std::vector<Endpoint> all;
        bool own = answer != known->second.end() && !answer->second.found.empty();
        if (own) all = answer->second.found;
        if (own && answer->second.doubted) addNew(all, answer->second.good);
        if (!own || answer->second.doubted) addNew(all, ofOthers(known->second, uplink));
        if (!all.empty()) addNew(options.endpointsOver[uplink], all);
      }
    }
  }
  return out;
}

bool PeerResolver::asksHere() const {
  return std::ranges::any_of(uplinks_, [&](const std::string& uplink) {
    auto asked = asked_.find(uplink);
    return asked != asked_.end() && asked->second.local;
  });
}

std::vector<Address> PeerResolver::foundOver(const std::string& uplink) const {
  std::vector<Address> out;
  for (const auto& [name, answers] : found_) {
    auto answer = answers.find(uplink);
    if (answer == answers.end()) continue;
    for (const Endpoint& e : answer->second.found) out.push_back(e.address);
  }
  return out;
}

void PeerResolver::addTo(std::vector<UplinkStatus>& uplinks) const {
  for (UplinkStatus& uplink : uplinks) {
    auto asked = asked_.find(uplink.name);
    if (asked == asked_.end()) continue;
    for (const Address& a : asked->second.servers) uplink.resolvers.push_back(a.toString());
    uplink.resolversFrom = asked->second.source;
  }
}

}  // namespace braid
