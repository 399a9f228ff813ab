#include "tunnel/peer/restart_notice.h"

#include <utility>

namespace braid {

void RestartNotices::begin(std::vector<KnownInitiator> initiators, Time now) {
  calls_.clear();
  for (KnownInitiator& initiator : initiators) {
    if (initiator.routes.empty()) continue;
    if (initiator.routes.size() > KnownInitiator::kMostRoutes)
      initiator.routes.resize(KnownInitiator::kMostRoutes);
    calls_.emplace(now, Call{std::move(initiator)});
    now += kSpacing;
  }
}

void RestartNotices::end(const Pin& pin) {
  std::erase_if(calls_, [&](const auto& entry) { return entry.second.initiator.pin == pin; });
}

bool RestartNotices::pollDatagram(PacketPool& pool, Datagram& out, Time now) {
  if (nextDeadline() > now) return false;
  auto node = calls_.extract(calls_.begin());
  Call& call = node.mapped();
  const KnownInitiator& initiator = call.initiator;
  Packet packet = pool.allocate();
  bool sent = static_cast<bool>(packet);
  if (sent) {
    writeReturnCall(initiator.call, packet);
    out = {initiator.routes[call.route], Ecn::kNotEct, std::move(packet)};
  }
  if (++call.route == initiator.routes.size()) {
    node.key() = now + kFirstPause * (1 << call.round);
    call.route = 0;
    ++call.round;
  }
  if (call.round < kRounds) calls_.insert(std::move(node));
  return sent;
}

}  // namespace braid
