#include "sim/host_flow.h"

#include "sim/flows.h"

namespace braid::sim {

Duration gapOf(const Sizes& sizes, uint64_t most, double load, size_t hosts, double rate) {
  return fromSeconds(sizes.mean(most) * 8 / (load * static_cast<double>(hosts) * rate));
}

size_t otherHost(Random& random, size_t host, size_t hosts) {
  return (host + 1 + random.below(hosts - 1)) % hosts;
}

std::vector<HostFlow> flowsOfRandomPairs(Random& random, const Sizes& sizes,
                                         const Arrivals& arrivals) {
  std::vector<HostFlow> flows;
  for (Duration at{}; at < arrivals.until; at += exponential(random, arrivals.gap)) {
    size_t client = random.below(arrivals.hosts),
           server = otherHost(random, client, arrivals.hosts);
    flows.push_back({client, server, sizes.draw(random, arrivals.most), Time{} + at});
  }
  return flows;
}

}  // namespace braid::sim
