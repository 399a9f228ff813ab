// Slow paths that are full in both directions.

#include <algorithm>
#include <stdexcept>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/rate/wan_network.h"

namespace braid::sim {

namespace {

/// Bit/s and delay of each way of the two paths. Each buffer holds what its link sends in a second.
constexpr double kTwoRates[] = {0.8e6, 0.4e6};
constexpr Duration kTwoDelays[] = {20ms, 30ms};
constexpr Duration kOneSecond = 1s;
/// The delays differ by up to this much from seed to seed.
constexpr Duration kDelaySpread = 4ms;
/// Not measured: starts and the first of the rival.
constexpr Duration kSettle = 10s;
/// Segments in the flows' queues: what a host has in its window.
constexpr size_t kWindow = 512;
constexpr size_t kDatagram = 1500;  // bytes, of a datagram's IP packet

constexpr uint16_t kFlowPort = 999;

/// The links, and the measured tunnel over them. A rival is a tunnel of its own with CUBIC, which
/// shares the first link.
class TwoWay {
 public:
  explicit TwoWay(const RateParams& params)
      : options_(wanOptions(params, params.controller, "none")),
        network_(params.seed, options_),
        pair_(network_.addPair()),
        params_(params),
        series_(network_.world, params.series) {
    Random hair(params.seed);
    for (size_t i = 0; i < std::size(kTwoRates); ++i) {
      LinkOptions link{.rateBitsPerSecond = kTwoRates[i], .delay = kTwoDelays[i]};
      link.delay += Duration(hair.below(static_cast<uint64_t>(kDelaySpread.count())));
      link.queueBytes = static_cast<size_t>(kTwoRates[i] / 8 * toSeconds(kOneSecond));
      cables_.push_back(network_.cable(link));
      network_.join(pair_, {cables_.back()});
      for (SharedLink* each : {cables_[i].down, cables_[i].up})
        waits_.push_back(std::make_unique<Waits>(*each));
    }
  }

  Network::Pair addRival(size_t line) {
    Network::Pair rival = network_.addPair(wanOptions(params_, params_.wan.rival, "none"));
    network_.join(rival, {cables_[line]});
    return rival;
  }
  void start() {
    network_.start();
    const char* names[] = {"fast", "slow"};
    for (size_t i = 0; i < cables_.size(); ++i)
      series_.watch(names[i], pair_, network_.world.paths()[i]->name(), *cables_[i].down);
    series_.begin();
  }
  /// An endless flow between the hosts of a pair.
  const Saturation& saturate(const Network::Pair& pair, bool down) {
    auto [to, from] =
        down ? std::pair(pair.client, pair.server) : std::pair(pair.server, pair.client);
    uint16_t mss = segmentSize(*from);
    flows_.push_back(&network_.world.add<Saturation>(*to, *from, down ? kFlowPort : kFlowPort + 1,
                                                     mss, kWindow));
    return *flows_.back();
  }
  /// Runs, and returns what each flow got meanwhile, in bit/s of inner packets.
  std::vector<double> measure(Duration time) {
    network_.world.run(kSettle);
    for (auto& waits : waits_) waits->restart();
    std::vector<double> carried;
    for (const Cable& cable : cables_)
      for (SharedLink* each : {cable.down, cable.up}) carried.push_back(bytesOf(*each));
    std::vector<double> rates;
    for (const Saturation* flow : flows_) rates.push_back(-static_cast<double>(flow->received()));
    network_.world.run(time);
    requireSound(network_.world);
    for (size_t i = 0; i < rates.size(); ++i) {
      double payload = rates[i] + static_cast<double>(flows_[i]->received());
      rates[i] = payload * 8 / toSeconds(time);
    }
    size_t link = 0;
    for (size_t i = 0; i < cables_.size(); ++i)
      for (SharedLink* each : {cables_[i].down, cables_[i].up}) {
        double bits = (bytesOf(*each) - carried[link++]) * 8;
        busy_.push_back(bits / kTwoRates[i] / toSeconds(time));
      }
    return rates;
  }
  /// Payload that the paths carry, bit/s: full datagrams and nothing else.
  double capacity() const {
    double payload = segmentSize(*pair_.server);
    return (kTwoRates[0] + kTwoRates[1]) * payload / kDatagram;
  }
  Json linksJson() const {
    const char* names[] = {"fast down", "fast up", "slow down", "slow up"};
    Json j;
    for (size_t i = 0; i < waits_.size(); ++i) {
      j[names[i]] = waits_[i]->json();
      j[names[i]]["utilisation"] = busy_[i];
    }
    return j;
  }
  const Network::Pair& pair() const { return pair_; }
  World& world() { return network_.world; }

 private:
  double bytesOf(SharedLink& link) {
    return static_cast<double>(link.stats(network_.world.now()).delivered.bytes);
  }

  TunnelOptions options_;
  Network network_;
  Network::Pair pair_;
  const RateParams& params_;
  Series series_;
  std::vector<Cable> cables_;
  std::vector<std::unique_ptr<Waits>> waits_;
  std::vector<const Saturation*> flows_;
  std::vector<double> busy_;  // of each link, the share of its rate that it delivered
};

}  // namespace

Json runTwoWay(const RateParams& params) {
  const std::string& load = params.wan.load;
  TwoWay lab(params);
  std::vector<Network::Pair> rivals;
  if (load == "rival") rivals = {lab.addRival(0), lab.addRival(1)};
  if (load == "stranger") rivals = {lab.addRival(0), lab.addRival(1)};
  lab.start();
  lab.saturate(lab.pair(), true);
  if (load != "stranger") lab.saturate(lab.pair(), false);
  for (const Network::Pair& rival : rivals) lab.saturate(rival, load == "rival");
  std::vector<double> rates = lab.measure(fromSeconds(params.wan.seconds.value_or(60)));
  Json j{{"load", load}, {"links", lab.linksJson()}, {"hash", lab.world().hash()}};
  j["down_share"] = rates[0] / lab.capacity();
  if (load != "stranger") j["up_share"] = rates[1] / lab.capacity();
  if (load == "rival") j["share"] = rates[0] / (rates[0] + rates[2] + rates[3]);
  return j;
}

}  // namespace braid::sim
