#include "gateway/state/initiators.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace braid {

void InitiatorTracker::configure(const Config& config, Time now) {
  bool any = std::any_of(config.peers.begin(), config.peers.end(), [](const PeerConfig& p) {
    return p.options.endpoints.empty() && p.hosts.empty();
  });
  bool needed = any && !config.listen.empty() && !config.state.empty();
  if (needed && !store_) store_.emplace(config.state + ".initiators");
  if (!needed) store_.reset();
  onChange(now);
}

void InitiatorTracker::begin(const Config& config, Time now) {
  configure(config, now);
  if (!store_) return;
  load(now);
  std::vector<KnownInitiator> initiators;
  for (const auto& [pin, kept] : away_) {
    KnownInitiator initiator{pin, kept.notice, {}};
    for (const KeptRoute& r : kept.routes) {
      if (std::optional<SocketId> socket = listeners_.idOf(r.listen))
        initiator.routes.push_back({*socket, r.local, r.remote});
    }
    initiators.push_back(std::move(initiator));
  }
  deadline_ = kNever;  // the file is right until a peer has come
  tunnel_.sendRestartNotices(std::move(initiators), now);
}

void InitiatorTracker::load(Time now) {
  awayUntil_ = now + kAway;
  try {
    for (StoredInitiator& kept : store_->load()) away_.insert_or_assign(kept.pin, std::move(kept));
  } catch (const std::runtime_error& e) {
    log_.warn(LogKind::kDevice, now, e.what());
  }
}

void InitiatorTracker::onChange(Time now) {
  if (store_) deadline_ = std::min(deadline_, std::max(now + kSettle, next_));
}

StoredInitiator InitiatorTracker::kept(const KnownInitiator& initiator) const {
  StoredInitiator out{initiator.pin, initiator.notice, {}};
  for (const Route& r : initiator.routes) {
    if (std::optional<Endpoint> listen = listeners_.endpointOf(r.socket))
      out.routes.push_back({*listen, r.local, r.remote});
  }
  return out;
}

void InitiatorTracker::keep(Time now) {
  deadline_ = kNever;
  if (!store_) return;
  std::vector<StoredInitiator> all;
  for (const KnownInitiator& initiator : tunnel_.knownInitiators(now)) {
    away_.erase(initiator.pin);
    all.push_back(kept(initiator));
  }
  if (now > awayUntil_) away_.clear();
  for (const auto& [pin, initiator] : away_) all.push_back(initiator);
  next_ = now + kPause;
  if (std::string problem = store_->save(all); !problem.empty())
    log_.warn(LogKind::kDevice, now, problem + "; after a restart its peers come back later");
}

}  // namespace braid
