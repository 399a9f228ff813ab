#include "sim/ns3/star.h"

namespace braid::crosscheck {

Star::Star(const StarSettings& settings) : hub_(network_.addNode()), receiver_(network_.addNode()) {
  LinkSettings out{.mbps = settings.mbps, .delay = settings.rtt / 4};
  network_.join(hub_, receiver_, out, settings.port, std::nullopt);
  network_.addDefaultRoute(receiver_, hub_);
  LinkSettings access = out;
  if (settings.accessMbps > 0) access.mbps = settings.accessMbps;
  for (uint32_t i = 0; i < settings.senders; ++i) {
    auto sender = network_.addNode();
    network_.join(sender, hub_, access, std::nullopt, settings.port);
    network_.addDefaultRoute(sender, hub_);
    End from{sender, network_.port(sender, hub_).address()};
    End to{receiver_, network_.port(receiver_, hub_).address()};
    flows_.push_back(std::make_unique<Flow>(from, to, static_cast<uint16_t>(i)));
  }
}

uint64_t Star::received() const {
  uint64_t sum = 0;
  for (const auto& flow : flows_) sum += flow->received();
  return sum;
}
uint64_t Star::timeouts() const {
  uint64_t sum = 0;
  for (const auto& flow : flows_) sum += flow->timeouts();
  return sum;
}

}  // namespace braid::crosscheck
