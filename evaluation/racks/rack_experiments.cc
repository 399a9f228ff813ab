#include "evaluation/racks/rack_experiments.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"
#include "simnet/tcp/rivals.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim {

namespace {

constexpr Duration kRound = 3s;
constexpr Duration kPacketTime = 12us;  // 1500 bytes at 1 Gbit/s
/// Connections that exist before their flows are opened in this time, in which nothing else is
/// sent.
constexpr Duration kOpening = 1s;
/// Time from the begin of the large flows to the first small one. The large flows have filled the
/// queue by then.
constexpr Duration kHeadStart = kOpening + 2s;
/// Time after the last round. Flows incomplete then count with the time that has passed.
constexpr Duration kLimit = 15s;
constexpr uint64_t kLargeBytes = uint64_t{1} << 40;
constexpr uint16_t kFirstFlowPort = 1000;

constexpr const char* kShims[] = {"off", "sender", "paper", "both", "cache"};

/// A flow that is measured.
struct Measured {
  size_t source = 0;
  uint64_t bytes = 0;
  Time begin{};
  std::unique_ptr<TcpFlow> flow;
};

/// The tree and its flows.
class Rack {
 public:
  explicit Rack(const RackParams& p)
      : tree(treeOf(p), p.seed), p_(p), traffic_(p.seed ^ 0x7261636b73), tcp_(tcpOf(p)) {}

  /// Adds a large flow, which begins about at the end of kOpening.
  void addLarge(size_t source) {
    tree.after(kOpening + exponential(traffic_, kPacketTime), [this, source, port = port_++] {
      large.push_back(std::make_unique<TcpFlow>(tree, tree.sender(source), tree.receiver(), port,
                                                kLargeBytes, tcp_));
    });
  }
  /// Adds a flow of `source` that begins after `ahead` (at least kOpening).
  void addFlow(size_t source, uint64_t bytes, Duration ahead) {
    bool handshake = p_.setup == "handshake";
    flows.push_back({source, bytes, tree.now() + ahead, nullptr});
    size_t i = flows.size() - 1;
    Duration opens = handshake ? ahead : Duration(traffic_.below(uint64_t{kOpening / 1ns}));
    auto connect = [this, i, port = port_++, handshake] {
      Measured& m = flows[i];
      m.flow = std::make_unique<TcpFlow>(tree, tree.sender(m.source), tree.receiver(), port,
                                         handshake ? m.bytes : 0, tcp_);
    };
    tree.after(opens, connect);
    if (!handshake) tree.after(ahead, [this, i] { flows[i].flow->write(flows[i].bytes); });
  }
  bool done(const Measured& m) const { return m.flow && m.flow->received() >= m.bytes; }
  double seconds(const Measured& m) const {
    return toSeconds((done(m) ? m.flow->finishedAt() : tree.now()) - m.begin);
  }
  /// Runs until all measured flows are complete or the time is over.
  void finish(Duration limit) {
    Time end = tree.now() + limit;
    while (tree.now() < end &&
           !std::ranges::all_of(flows, [&](const Measured& m) { return done(m); })) {
      tree.run(10ms);
    }
  }

  RackTree tree;
  std::vector<Measured> flows;
  std::vector<std::unique_ptr<TcpFlow>> large;

 private:
  RackParams p_;
  Random traffic_;
  tcp::Options tcp_;
  uint16_t port_ = kFirstFlowPort;
};

Json describe(const Rack& rack) {
  uint64_t timeouts = 0, retransmits = 0, incomplete = 0, repeats = 0, largeBytes = 0;
  for (const Measured& m : rack.flows) {
    incomplete += !rack.done(m);
    if (!m.flow) continue;
    timeouts += m.flow->timeouts(), retransmits += m.flow->retransmits(),
        repeats += m.flow->repeats();
  }
  for (const auto& flow : rack.large) largeBytes += flow->received();
  const PortQueue& queue = rack.tree.bottleneck();
  return {{"flows", rack.flows.size()},
          {"incomplete", incomplete},
          {"timeouts", timeouts},
          {"retransmits", retransmits},
          {"repeats", repeats},
          {"large_mbit",
           static_cast<double>(largeBytes) * 8e-6 / toSeconds(rack.tree.now() - Time{1s})},
          {"packets", queue.in()},
          {"dropped", queue.dropped()},
          {"marked", queue.marked()},
          {"actuators", shimJson(rack.tree.senderShims())},
          {"hash", rack.tree.hash()}};
}

// Section V-A. In each round the sources of the small flows begin in a different order, on average
// one packet's transmission time apart.
Json runIncastRounds(const RackParams& p) {
  Rack rack(p);
  size_t large = p.large ? p.flows / 4 : 0;
  size_t small = p.flows - large;
  for (size_t i = 0; i < large; ++i) rack.addLarge(small + i);
  Random order(p.seed);
  for (size_t round = 0; round < p.rounds; ++round) {
    std::vector<size_t> sources(small);
    std::iota(sources.begin(), sources.end(), size_t{0});
    for (size_t i = small; i > 1; --i) std::swap(sources[i - 1], sources[order.below(i)]);
    Duration start = kHeadStart + static_cast<int64_t>(round) * kRound;
    for (size_t source : sources)
      rack.addFlow(source, p.bytes, start += exponential(order, kPacketTime));
  }
  rack.tree.run(kHeadStart + static_cast<int64_t>(p.rounds) * kRound);
  rack.finish(kLimit);
  std::vector<double> times, sums(small);
  for (const Measured& m : rack.flows) {
    times.push_back(rack.seconds(m));
    sums[m.source] += times.back() / static_cast<double>(p.rounds);
  }
  Json j = describe(rack);
  j["times"] = times;
  j["means"] = sums;  // of each source over the rounds; the paper's CDFs show these
  return j;
}

// A small version of section V-C: web search flows arrive at one port as a Poisson process.
Json runWebSearch(const RackParams& p) {
  RackParams own = p;
  Sizes sizes = namedSizes("web_search");
  Rack rack(own);
  Random arrivals(p.seed);
  double meanBytes = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i)
    meanBytes += static_cast<double>(sizes.draw(arrivals, kLargeBytes)) / kDraws;
  Duration gap = fromSeconds(meanBytes * 8 / (p.load * treeOf(p).rate));
  for (Duration at = kHeadStart; toSeconds(at - kHeadStart) < p.seconds;
       at += exponential(arrivals, gap)) {
    rack.addFlow(arrivals.below(p.flows), sizes.draw(arrivals, kLargeBytes), at);
  }
  rack.tree.run(kHeadStart + fromSeconds(p.seconds));
  rack.finish(kLimit);
  std::vector<double> all, small;
  for (const Measured& m : rack.flows) {
    all.push_back(rack.seconds(m));
    if (m.bytes <= kSmallFlow) small.push_back(all.back());
  }
  Json j = describe(rack);
  j["small"] = small.size();
  j["mean_small"] = mean(small);
  j["p50_small"] = percentile(small, 0.5);
  j["p95_small"] = percentile(small, 0.95);
  j["p99_small"] = percentile(small, 0.99);
  j["mean_all"] = mean(all);
  j["p50_all"] = percentile(all, 0.5);
  j["p99_all"] = percentile(all, 0.99);
  return j;
}

constexpr RackExperiment kExperiments[] = {
    {"incast", "section V-A: rounds of small flows, with --large beside large ones",
     runIncastRounds},
    {"websearch", "section V-C: flows of web search at one port, for alpha", runWebSearch},
    {"traced",
     "section III-B: web search or data mining at one port, each loss of the hosts' TCP traced",
     runTraced},
    {"leaf-spine", "section V-B: web search or data mining between the hosts of nine racks",
     runLeafSpine},
    {"cluster",
     "section VI: requests between the 84 servers of a testbed, one to all or all to all",
     runCluster},
};

}  // namespace

std::span<const char* const> shimNames() {
  return kShims;
}

std::span<const RackExperiment> rackExperiments() {
  return kExperiments;
}

RackTreeOptions treeOf(const RackParams& p) {
  if (std::ranges::find(kShims, p.shim) == std::end(kShims))
    throw std::runtime_error("no shim " + p.shim);
  RackTreeOptions o;
  o.senders = p.flows;
  o.jitter = fromSeconds(p.jitter * 1e-6);
  if (p.rtt) o.rtt = fromSeconds(*p.rtt * 1e-3);
  o.queue = p.queue;
  o.discipline = disciplineOf(p.scheme);
  o.senderShim = p.shim != "off";
  o.receiverShim = p.shim == "both";
  o.shim = shimOf(p);
  return o;
}

AckShimOptions shimOf(const RackParams& p) {
  AckShimOptions shim;
  shim.alpha = p.alpha;
  if (p.shim == "paper") shim.holes = shim.replay = false;
  shim.cacheOutgoing = p.shim == "cache";
  if (p.gamma) shim.gamma = *p.gamma;
  return shim;
}

// The congestion control that the paper combines with each queue. As in ns-2, all data is
// ECN-capable, and 200 ms is the least timeout, not the least variation.
tcp::Options tcpOf(const RackParams& p) {
  Discipline d = disciplineOf(p.scheme);
  tcp::Options o = tcp::plainOptions();
  o.minRtoAboveSrtt = false;
  if (d == Discipline::kDctcp) o.control = tcp::Control::kDctcp;
  o.ecn = o.ecnEverywhere = d == Discipline::kRedEcn || d == Discipline::kDctcp;
  o.content = false;
  return o;
}

bool isDctcp(const RackParams& p) {
  return disciplineOf(p.scheme) == Discipline::kDctcp || p.control == "dctcp";
}

tcp::Options hostTcp(const RackParams& p) {
  tcp::Options o = tcp::recoveryOptions(p.recovery);
  o.control = isDctcp(p) ? tcp::Control::kDctcp : tcp::controlOf(p.control);
  o.ecn = o.ecnEverywhere = o.control == tcp::Control::kDctcp;
  o.minRtoAboveSrtt = true;
  o.minProbe = 10ms;  // from the draft that the paper cites
  o.content = false;
  return o;
}

Json shimJson(const ShimCounters& c) {
  ActuatorCounts all;
  for (const ActuatorCounts& a : c.actuators) addCounters(all, a);
  return {{"fired", all.fired},
          {"useful", all.useful},
          {"spurious", all.spurious},
          {"acks", c.acksSent},
          {"replays", c[Actuator::kNearReplay].fired},
          {"helpless", c.helpless}};
}

}  // namespace braid::sim
