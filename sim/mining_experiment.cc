#include <algorithm>
#include <utility>
#include <vector>

#include "sim/fat_tree.h"
#include "sim/flows.h"
#include "sim/message_flow.h"
#include "sim/network.h"
#include "sim/saturation.h"
#include "sim/sizes.h"

namespace braid::sim {

namespace {

// AMP section 5.3, figure 14.
constexpr Duration kMeanGap = 780us;  // between the flows of a host
constexpr uint64_t kShortBelow = 100'000;
constexpr uint16_t kFirstLongPort = 1000;

/// A flow of a tunnel.
struct LongFlow {
  size_t from = 0, to = 0;
  uint64_t bytes = 0;
  Time begin{};
  const Saturation* flow = nullptr;
};

class Mining {
 public:
  explicit Mining(const FabricParams& p) : p_(p), tree_(p), shorts_(tree_) {}

  Json run() {
    draw();
    std::vector<std::pair<size_t, size_t>> ways;
    for (const LongFlow& f : longs_) ways.emplace_back(f.from, f.to);
    tree_.bringUp(ways);
    Time start = tree_.world.now();
    for (const Short& f : small_) shorts_.add(f.from, f.to, f.bytes, f.begin - Time{});
    for (LongFlow& f : longs_) {
      f.begin = start + (f.begin - Time{});
      tree_.world.at(f.begin, [this, &f] { begin(f); });
    }
    tree_.world.run(fromSeconds(p_.time / 1000));
    shorts_.finish();
    requireSound(tree_.world);
    return report();
  }

 private:
  struct Short {
    size_t from = 0, to = 0;
    uint64_t bytes = 0;
    Time begin{};
  };
  // Times from the beginning of the traffic on.
  void draw() {
    Sizes sizes = namedSizes("data_mining");
    Random random(p_.seed);
    size_t hosts = tree_.network.hosts();
    Duration gap = Duration(kMeanGap) / static_cast<int64_t>(hosts);
    for (Duration at = exponential(random, gap); at < fromSeconds(p_.time / 1000);
         at += exponential(random, gap)) {
      size_t from = random.below(hosts);
      size_t to = (from + 1 + random.below(hosts - 1)) % hosts;
      uint64_t bytes = sizes.draw(random, p_.most);
      if (bytes < kShortBelow)
        small_.push_back({from, to, bytes, Time{} + at});
      else
        longs_.push_back({from, to, bytes, Time{} + at, nullptr});
    }
  }
  void begin(LongFlow& f) {
    Node& server = tree_.gateways.at(f.from);
    f.flow = &tree_.world.add<Saturation>(tree_.gateways.at(f.to), server, port_++, segmentSize(server),
                                          p_.ahead, f.bytes);
  }
  Json report() const {
    std::vector<double> goodput;
    uint64_t bytes = 0;
    for (const LongFlow& f : longs_) {
      if (!f.flow) continue;
      bytes += f.flow->received();
      Time end = std::min(f.flow->doneAt(), tree_.world.now());
      goodput.push_back(static_cast<double>(f.flow->received()) * 8e-6 / toSeconds(end - f.begin));
    }
    auto open = static_cast<size_t>(std::ranges::count_if(
        longs_, [](const LongFlow& f) { return !f.flow || f.flow->doneAt() == kNever; }));
    uint64_t dropped = 0, marked = 0;
    for (const Port& port : tree_.network.ports())
      dropped += port.counters().dropped, marked += port.counters().marked;
    return {{"hosts", tree_.network.hosts()},
            {"short", timesJson(shorts_.times(), shorts_.incomplete())},
            {"long",
             {{"count", longs_.size()},
              {"open", open},
              {"bytes", bytes},
              {"goodput_mean_mbps", mean(goodput)},
              {"goodput_p50_mbps", percentile(goodput, 0.5)}}},
            {"dropped", dropped},
            {"marked", marked},
            {"hash", tree_.world.hash()}};
  }

  FabricParams p_;
  FatTree tree_;
  ShortFlows shorts_;
  std::vector<Short> small_;
  std::vector<LongFlow> longs_;
  uint16_t port_ = kFirstLongPort;
};

}  // namespace

Json runMining(const FabricParams& p) {
  return Mining(p).run();
}

}  // namespace braid::sim
