#include "gateway/proxy/accept_policy.h"

#include <algorithm>

#include "host/system.h"

namespace braid {

void AcceptPolicy::configure(const Config& config) {
  accept_ = config.streams.accept;
  forwarding_ = {};
}

bool AcceptPolicy::forwards(Address::Family family, Time now) {
  Forwarding& known = forwarding_[family == Address::Family::kV6];
  if (known.until > now) return known.on;
  known = {now + kLook, false};
  try {
    known.on = network_.forwards(family, device_);
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, std::string(e.what()) + "; streams of peers are refused");
  }
  return known.on;
}

std::optional<StreamCause> AcceptPolicy::refusal(const Endpoint& destination, Time now) {
  const Address& address = destination.address;
  // An address of one of this host's interfaces belongs to this host, even where the routes lead
  // elsewhere.
  if (monitor_.table().isOwn(address)) return StreamCause::kForbidden;
  // Some changes of the addresses were missed: the address may be this host's.
  if (monitor_.deadline() != kNever) return StreamCause::kLimit;
  auto matches = [&](const StreamRule& rule) {
    return (!rule.network || rule.network->contains(address)) &&
           rule.firstPort <= destination.port && destination.port <= rule.lastPort;
  };
  bool accepted =
      accept_.empty() ? forwards(address.family, now) : std::ranges::any_of(accept_, matches);
  if (!accepted) return StreamCause::kForbidden;
  return std::nullopt;
}

}  // namespace braid
