#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"
#include "evaluation/racks/loss_trace.h"
#include "evaluation/racks/rack_experiments.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

namespace {

/// All connections exist before the first flow. They are opened in this time.
constexpr Duration kTracedOpening = 1s;
/// Time after the begin of the last flow. Flows incomplete then count with the time that has
/// passed.
constexpr Duration kTracedPatience = 30s;
constexpr uint16_t kFirstTracedPort = 1000;

struct TracedFlow {
  uint64_t bytes = 0;
  Time begin{};
  Time end = kNever;
  std::unique_ptr<tcp::Connection> connection;
  std::unique_ptr<LossTrace> trace;
};

class TracedRack {
 public:
  explicit TracedRack(const RackParams& p) : tree_(rackOf(p), p.seed) { draw(p); }

  Json run() {
    Time last = flows_.empty() ? tree_.now() : flows_.back().begin;
    while (tree_.now() < last + kTracedPatience &&
           !std::ranges::all_of(flows_, [](const TracedFlow& f) { return f.end != kNever; }))
      tree_.run(10ms);
    return report();
  }

 private:
  static RackTreeOptions rackOf(const RackParams& p) {
    RackTreeOptions o = treeOf(p);
    if (!p.rtt) o.rtt = kTestbedRtt;
    if (isDctcp(p)) o.discipline = Discipline::kDctcp;
    return o;
  }
  // Draws Poisson arrivals at the port, each from one of the hosts.
  void draw(const RackParams& p) {
    Sizes sizes = namedSizes(p.sizes);
    Random random(p.seed);
    Duration gap = fromSeconds(sizes.mean(p.most) * 8 / (p.load * rackOf(p).rate));
    Time start = tree_.now() + kTracedOpening;
    std::vector<size_t> senders;
    for (Time at = start; at < start + fromSeconds(p.seconds); at += exponential(random, gap)) {
      senders.push_back(random.below(p.flows));
      flows_.push_back({sizes.draw(random, p.most), at, kNever, nullptr, nullptr});
    }
    if (flows_.size() > size_t{UINT16_MAX} - kFirstTracedPort)
      throw std::runtime_error("too many flows for one port");
    auto count = static_cast<int64_t>(flows_.size());
    for (size_t i = 0; i < flows_.size(); ++i) {
      auto turn = static_cast<int64_t>(i) * (kTracedOpening / 2) / count;
      tree_.after(turn, [this, &flow = flows_[i], from = senders[i], options = hostTcp(p),
                         port = static_cast<uint16_t>(kFirstTracedPort + i)] {
        flow.connection =
            std::make_unique<tcp::Connection>(tree_, tree_.sender(from), tree_.receiver(),
                                              tcp::Connection::Ports{port, port}, options);
        flow.trace = std::make_unique<LossTrace>(flow.connection->client());
      });
      tree_.at(flows_[i].begin, [&flow = flows_[i]] {
        flow.connection->client().send(flow.bytes,
                                       [&flow](const tcp::Message& m) { flow.end = m.end; });
      });
    }
  }
  Json report() const {
    std::vector<double> all, small;
    std::vector<TracedRecovery> recoveries;
    uint64_t timeouts = 0, probes = 0, retransmits = 0, incomplete = 0;
    for (const TracedFlow& f : flows_) {
      all.push_back(toSeconds(std::min(f.end, tree_.now()) - f.begin));
      if (f.bytes <= kSmallFlow) small.push_back(all.back());
      incomplete += f.end == kNever;
      const tcp::SenderStats& stats = f.connection->client().stats();
      timeouts += stats.timeouts, probes += stats.probes, retransmits += stats.retransmitted;
      recoveries.insert(recoveries.end(), f.trace->recoveries().begin(),
                        f.trace->recoveries().end());
    }
    return {{"flows", all.size()},
            {"incomplete", incomplete},
            {"mean_all", mean(all)},
            {"p50", percentile(all, 0.5)},
            {"p99", percentile(all, 0.99)},
            {"small", small.size()},
            {"mean_small", mean(small)},
            {"p50_small", percentile(small, 0.5)},
            {"p99_small", percentile(small, 0.99)},
            {"timeouts", timeouts},
            {"probes", probes},
            {"retransmits", retransmits},
            {"fast", recoveriesJson(recoveries, false)},
            {"timeout", recoveriesJson(recoveries, true)},
            {"packets", tree_.bottleneck().in()},
            {"dropped", tree_.bottleneck().dropped()},
            {"marked", tree_.bottleneck().marked()},
            {"actuators", shimJson(tree_.senderShims())},
            {"hash", tree_.hash()}};
  }

  RackTree tree_;
  std::vector<TracedFlow> flows_;
};

}  // namespace

Json runTraced(const RackParams& p) {
  return TracedRack(p).run();
}

}  // namespace braid::sim
