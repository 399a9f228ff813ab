#include "gateway/caller_keeper.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace braid {

void CallerKeeper::configure(const Config& config, Time now) {
  bool any = std::any_of(config.peers.begin(), config.peers.end(),
                         [](const PeerConfig& p) { return p.options.endpoints.empty() && p.hosts.empty(); });
  bool needed = any && !config.listen.empty() && !config.state.empty();
  if (needed && !book_) book_.emplace(config.state + ".callers");
  if (!needed) book_.reset();
  onChange(now);
}

void CallerKeeper::begin(const Config& config, Time now) {
  configure(config, now);
  if (!book_) return;
  load(now);
  std::vector<Caller> callers;
  for (const auto& [pin, kept] : away_) {
    Caller caller{pin, kept.call, {}};
    for (const KeptRoute& r : kept.routes) {
      if (std::optional<SocketId> socket = listeners_.idOf(r.listen))
        caller.routes.push_back({*socket, r.local, r.remote});
    }
    callers.push_back(std::move(caller));
  }
  deadline_ = kNever;  // the file holds until a peer has come
  tunnel_.callBack(std::move(callers), now);
}

void CallerKeeper::load(Time now) {
  awayUntil_ = now + kAway;
  try {
    for (KeptCaller& kept : book_->load()) away_.insert_or_assign(kept.pin, std::move(kept));
  } catch (const std::runtime_error& e) {
    log_.warn(LogKind::kDevice, now, e.what());
  }
}

void CallerKeeper::onChange(Time now) {
  if (book_) deadline_ = std::min(deadline_, std::max(now + kSettle, next_));
}

KeptCaller CallerKeeper::kept(const Caller& caller) const {
  KeptCaller out{caller.pin, caller.call, {}};
  for (const Route& r : caller.routes) {
    if (std::optional<Endpoint> listen = listeners_.endpointOf(r.socket))
      out.routes.push_back({*listen, r.local, r.remote});
  }
  return out;
}

void CallerKeeper::keep(Time now) {
  deadline_ = kNever;
  if (!book_) return;
  std::vector<KeptCaller> all;
  for (const Caller& caller : tunnel_.callers(now)) {
    away_.erase(caller.pin);
    all.push_back(kept(caller));
  }
  if (now > awayUntil_) away_.clear();
  for (const auto& [pin, caller] : away_) all.push_back(caller);
  next_ = now + kPause;
  if (std::string problem = book_->save(all); !problem.empty())
    log_.warn(LogKind::kDevice, now, problem + "; after a restart its peers come back later");
}

}  // namespace braid
