#include "evaluation/ns3/star.h"

#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

Star::Star(const sim::TcpSetting& setting, const PortSettings& port)
    : hub_(network_.addNode()), receiver_(network_.addNode()) {
  LinkSettings link{.rate = setting.rate, .delay = microseconds(setting.rtt / 4)};
  network_.join(hub_, receiver_, link, port, std::nullopt);
  network_.addDefaultRoute(receiver_, hub_);
  for (size_t i = 0; i < setting.senders; ++i) {
    auto sender = network_.addNode();
    network_.join(sender, hub_, link, std::nullopt, std::nullopt);
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
