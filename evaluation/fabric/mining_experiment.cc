#include <algorithm>
#include <utility>
#include <vector>

#include "evaluation/fabric/fat_tree.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/network.h"
#include "evaluation/models/raw_flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

namespace {

// AMP section 5.3, figure 14.
constexpr Duration kMeanGap = 780us;  // mean time between the flows of a host
constexpr uint64_t kShortBelow = 100'000;
constexpr uint16_t kFirstLongPort = 1000;

/// A flow of a tunnel.
struct LongFlow {
  HostFlow plan;
  Saturation* flow = nullptr;
};

class Mining {
 public:
  explicit Mining(const FabricParams& p) : p_(p), tree_(p), shorts_(tree_) {}

  Json run() {
    draw();
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const LongFlow& f : longs_) pairs.emplace_back(f.plan.client, f.plan.server);
    tree_.gateways.start(std::move(pairs));
    Time start = tree_.world.now();
    for (const HostFlow& f : small_) shorts_.add(f.server, f.client, f.bytes, f.begin - Time{});
    for (LongFlow& f : longs_) {
      f.plan.begin = start + (f.plan.begin - Time{});
      tree_.world.at(f.plan.begin, [this, &f] { begin(f); });
    }
    tree_.world.run(fromSeconds(p_.time / 1000));
    Json longOnes = reportLong();
    shorts_.finish();
    requireSound(tree_.world);
    return report(std::move(longOnes));
  }

 private:
  // Times are counted from the beginning of the traffic.
  void draw() {
    Random random(p_.seed);
    size_t hosts = tree_.network.hosts();
    Duration gap = Duration(kMeanGap) / static_cast<int64_t>(hosts);
    Duration end = fromSeconds(p_.time / 1000);
    for (const HostFlow& f :
         flowsOfRandomPairs(random, namedSizes("data_mining"), {hosts, gap, end, p_.most})) {
      if (f.bytes < kShortBelow)
        small_.push_back(f);
      else
        longs_.push_back({f, nullptr});
    }
  }
  void begin(LongFlow& f) {
    Node& server = tree_.gateways.at(f.plan.server);
    f.flow = &tree_.world.add<Saturation>(tree_.gateways.at(f.plan.client), server, port_++,
                                          segmentSize(server), p_.ahead, f.plan.bytes);
  }
  /// Reports the goodput of the long flows and stops them, because otherwise the last short flows
  /// would wait for them for seconds.
  Json reportLong() {
    std::vector<double> goodput;
    uint64_t bytes = 0, open = 0;
    for (LongFlow& f : longs_) {
      if (!f.flow) continue;
      bytes += f.flow->received();
      open += f.flow->doneAt() == kNever;
      Time end = std::min(f.flow->doneAt(), tree_.world.now());
      goodput.push_back(static_cast<double>(f.flow->received()) * 8e-6 /
                        toSeconds(end - f.plan.begin));
      f.flow->stop();
    }
    return {{"count", longs_.size()},
            {"open", open},
            {"bytes", bytes},
            {"goodput_mean_mbps", mean(goodput)},
            {"goodput_p50_mbps", percentile(goodput, 0.5)}};
  }
  Json report(Json longOnes) const {
    uint64_t dropped = 0, marked = 0;
    for (const Port& port : tree_.network.ports())
      dropped += port.counters().dropped, marked += port.counters().marked;
    return {{"hosts", tree_.network.hosts()},
            {"short", timesJson(shorts_.times(), shorts_.incomplete())},
            {"long", std::move(longOnes)},
            {"dropped", dropped},
            {"marked", marked},
            {"hash", tree_.world.hash()}};
  }

  FabricParams p_;
  FatTree tree_;
  ShortFlows shorts_;
  std::vector<HostFlow> small_;
  std::vector<LongFlow> longs_;
  uint16_t port_ = kFirstLongPort;
};

}  // namespace

Json runMining(const FabricParams& p) {
  return Mining(p).run();
}

}  // namespace braid::sim
