#include "evaluation/models/traffic.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "evaluation/models/flows.h"

namespace braid::sim {

Sizes::Sizes(const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    double bytes = 0, probability = 0;
    if (fields >> bytes >> probability) points_.emplace_back(probability, bytes);
  }
  if (points_.empty() || !std::is_sorted(points_.begin(), points_.end()) ||
      points_.back().first != 1)
    throw std::runtime_error(file + ": no distribution of sizes");
}

uint64_t Sizes::draw(Random& random, uint64_t most) const {
  double bytes = 0;
  do bytes = std::ceil(quantile(random.uniform()));
  while (bytes > static_cast<double>(most));
  return static_cast<uint64_t>(std::max(bytes, 1.0));
}

// Integrates the distribution, which is linear between its points, up to `most`.
double Sizes::mean(uint64_t most) const {
  auto limit = static_cast<double>(most);
  double sum = points_.front().first * points_.front().second, share = points_.front().first;
  for (size_t i = 1; i < points_.size() && points_[i - 1].second < limit; ++i) {
    auto [p0, low] = points_[i - 1];
    auto [p1, high] = points_[i];
    double part = high > limit ? (limit - low) / (high - low) * (p1 - p0) : p1 - p0;
    sum += part * (low + std::min(high, limit)) / 2;
    share += part;
  }
  return sum / share;
}

double Sizes::quantile(double p) const {
  auto upper = std::upper_bound(points_.begin(), points_.end(), p,
                                [](double v, const auto& at) { return v < at.first; });
  if (upper == points_.begin()) return upper->second;
  if (upper == points_.end()) return points_.back().second;
  auto lower = upper - 1;
  double part = (p - lower->first) / (upper->first - lower->first);
  return lower->second + part * (upper->second - lower->second);
}

Sizes namedSizes(const std::string& name) {
  return Sizes(std::string(BRAID_SIM_DATA) + "/" + name + ".txt");
}

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

std::vector<size_t> derangement(size_t n, Random& random) {
  std::vector<size_t> to(n);
  std::iota(to.begin(), to.end(), size_t{0});
  // Sattolo's algorithm: a random permutation that is one cycle.
  for (size_t i = n; i-- > 1;) std::swap(to[i], to[random.below(i)]);
  return to;
}

}  // namespace braid::sim
