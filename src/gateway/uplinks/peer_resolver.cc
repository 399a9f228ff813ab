#include "gateway/uplinks/peer_resolver.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace braid {

namespace {
constexpr Duration kRetry = 30s;
}  // namespace

PeerResolver::PeerResolver(Host& host, LogLimiter& log, std::function<void()> onChange)
    : clock_(host.clock()),
      log_(log),
      onChange_(std::move(onChange)),
      resolver_(host.openResolver([this](const HostPort& name, const std::vector<Endpoint>& found) {
        onResult(name, found);
      })) {}

void PeerResolver::resolve(const std::vector<PeerConfig>& peers,
                           const std::set<std::string>& except) {
  if (!std::exchange(failed_, false)) pause_ = kFirstPause;
  std::vector<HostPort> wanted;
  for (const PeerConfig& p : peers) {
    for (const HostPort& name : p.hosts) {
      if (!except.contains(p.options.name) || !found_.contains(name)) wanted.push_back(name);
    }
  }
  deadline_ = wanted.empty() ? kNever : clock_.now() + kRetry;
  for (const HostPort& name : wanted) resolver_->request(name);
}

void PeerResolver::retryLater() {
  if (deadline_ == kNever) deadline_ = clock_.now() + kRetry;
}

void PeerResolver::retryNow() {
  pause_ = kFirstPause;
  if (deadline_ != kNever) deadline_ = clock_.now();
}

// Counts once per resolve(), however many names fail.
void PeerResolver::noteFailure() {
  if (std::exchange(failed_, true)) return;
  deadline_ = std::min(deadline_, clock_.now() + pause_);
  pause_ = std::min(2 * pause_, kRetry);
}

void PeerResolver::onResult(const HostPort& name, const std::vector<Endpoint>& found) {
  if (found.empty()) {
    noteFailure();
    return log_.warn(LogKind::kResolver, clock_.now(),
                     "cannot resolve " + name.host + "; will try again");
  }
  std::vector<Endpoint>& known = found_[name];
  if (known == found) return;
  known = found;
  for (const Endpoint& e : found) spdlog::info("{} is {}", name.host, e.toString());
  onChange_();
}

std::vector<PeerOptions> PeerResolver::peers(const std::vector<PeerConfig>& peers) const {
  std::vector<PeerOptions> out;
  for (const PeerConfig& p : peers) {
    PeerOptions& options = out.emplace_back(p.options);
    std::vector<Endpoint>& all = options.endpoints;
    for (const HostPort& name : p.hosts) {
      auto known = found_.find(name);
      if (known == found_.end()) continue;
      for (const Endpoint& e : known->second) {
        if (std::find(all.begin(), all.end(), e) == all.end()) all.push_back(e);
      }
    }
  }
  return out;
}

}  // namespace braid
