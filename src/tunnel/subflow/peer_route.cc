#include "tunnel/subflow/peer_route.h"

#include "tunnel/subflow/mtu_discovery.h"

namespace braid {

void PeerRoute::close() {
  validator_.cancel();
  response_.reset();
}

void PeerRoute::onPacket(const Route& from, size_t bytes, bool isNewest, bool isUnproven, Duration timeout,
                         Time now) {
  validator_.learnLocal(from);
  bool isOpen = route_.local.family == Address::Family::kNone;
  if (isOpen && hasSameEnds(route_, from)) route_.local = from.local;  // until now the kernel chose it
  if (isNewest && from != route_) {
    // RFC 9000 section 9.3: the peer may have a new address. It gets data when it has answered there.
    validator_.start(from, false, timeout, now);
  } else if (isNewest && validator_.running() && *validator_.route() != route_) {
    validator_.cancel();
    if (isUnproven) prove(timeout, now);
  }
  validator_.onReceived(from, bytes);
}

std::optional<PeerRoute::Proof> PeerRoute::onResponse(const PathToken& token, const Route& from, Time now) {
  std::optional<Route> candidate = validator_.route();
  std::optional<Duration> rtt = validator_.onResponse(token, from, now);
  if (!rtt) return std::nullopt;
  return Proof{*candidate, *rtt};
}

bool PeerRoute::hasFrame(Time now) const {
  return response_ || validator_.allowance(MtuDiscovery::kMinDatagram, now) > 0;
}

std::optional<PeerRoute::Frame> PeerRoute::takeFrame(Time now) {
  if (response_) {
    Frame frame{response_->route, std::nullopt, PathResponseFrame{response_->token}, 0, false};
    response_.reset();
    return frame;
  }
  size_t size = validator_.allowance(MtuDiscovery::kMinDatagram, now);
  if (size == 0) return std::nullopt;
  bool ect = validator_.isFirst();  // only one, for the path may drop what is marked
  return Frame{*validator_.route(), validator_.challenge(random_, now), std::nullopt, size, ect};
}

void PeerRoute::onTimer(bool isUnproven, Duration timeout, Time now) {
  if (validator_.onTimer(now) && isUnproven) prove(timeout, now);
}

}  // namespace braid
