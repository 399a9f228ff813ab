#include "evaluation/tcp/tcp_experiments.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "evaluation/models/timeout_model.h"
#include "evaluation/racks/rack_tree.h"
#include "simnet/tcp/connection.h"
#include "simnet/tcp/rivals.h"
#include "simnet/wired_pair.h"

namespace braid::sim {

namespace {

constexpr uint64_t kBulkBytes = uint64_t{1} << 40;
constexpr size_t kTimestampBytes = 12;  // RFC 7323, padded
constexpr uint16_t kClientPort = 10000;
/// incast: time to open the connections before the first round, and least pause between rounds.
constexpr Duration kRoundPause = 2s;

RackTreeOptions rackOf(const TcpParams& p, const TcpSetting& setting) {
  RackTreeOptions o;
  o.senders = setting.senders;
  o.rate = setting.rate;
  o.rtt = fromSeconds(setting.rtt * 1e-6);
  o.queue = setting.queue;
  o.threshold = p.threshold;
  o.discipline = p.control == "dctcp" ? Discipline::kDctcp : Discipline::kDropTail;
  return o;
}

/// One connection for each sender of a rack.
using Connections = std::vector<std::unique_ptr<tcp::Connection>>;

uint64_t timeoutsOf(const Connections& connections) {
  uint64_t sum = 0;
  for (const auto& c : connections) sum += c->client().stats().timeouts;
  return sum;
}

uint64_t receivedBy(const Connections& connections) {
  uint64_t sum = 0;
  for (const auto& c : connections) sum += c->server().received();
  return sum;
}

void connect(Connections& connections, RackTree& tree, size_t i, const tcp::Options& options) {
  auto port = static_cast<uint16_t>(kClientPort + i);
  connections.push_back(std::make_unique<tcp::Connection>(
      tree, tree.sender(i), tree.receiver(), tcp::Connection::Ports{port, port}, options));
}

Json runLossyPath(const TcpParams& p) {
  TcpSetting setting = settingOf(p, kLossyPath);
  LinkOptions link{.rateBitsPerSecond = setting.rate,
                   .delay = fromSeconds(setting.rtt * 1e-6 / 2),
                   .queueBytes = setting.queue * kWirePacket};
  WiredPair net(link, link, p.seed);
  Random losses(p.seed ^ 0x6c6f7373);
  net.left().onSend = [&](ByteView, const InnerPacket& ip) {
    return ip.payloadLength == 0 || !losses.chance(p.loss);
  };
  tcp::Connection connection(net, net.left(), net.right(), {kClientPort, kClientPort},
                             tcpOptionsOf(p));
  connection.client().send(kBulkBytes);
  net.run(fromSeconds(setting.seconds));
  const tcp::SenderStats& stats = connection.client().stats();
  return {{"goodput_mbps",
           static_cast<double>(connection.server().received()) * 8e-6 / setting.seconds},
          {"timeouts", stats.timeouts},
          {"fast_recoveries", stats.fastRecoveries},
          {"retransmitted", stats.retransmitted},
          {"sent", stats.sent},
          {"hash", net.hash()}};
}

Json runDctcpQueue(const TcpParams& p) {
  TcpSetting setting = settingOf(p, kDctcpQueue);
  RackTreeOptions rack = rackOf(p, setting);
  RackTree tree(rack, p.seed);
  Random starts(p.seed);
  Connections connections;
  for (size_t i = 0; i < rack.senders; ++i) {
    tree.after(startOf(setting, starts), [&, i] {
      connect(connections, tree, i, tcpOptionsOf(p));
      connections.back()->client().send(kBulkBytes);
    });
  }
  double seconds = setting.seconds, warmUp = seconds * kWarmUpShare;
  tree.run(fromSeconds(warmUp));
  uint64_t before = receivedBy(connections), drops = tree.bottleneck().dropped(),
           marks = tree.bottleneck().marked();
  uint64_t arrivals = tree.bottleneck().in();
  std::vector<double> queue;
  Duration step = fromSeconds(kWirePacket * 8 / rack.rate);
  Time end = tree.now() + fromSeconds(seconds - warmUp);
  while (tree.now() < end) {
    tree.run(step);
    queue.push_back(static_cast<double>(tree.bottleneck().size()));
  }
  std::vector<double> shares;
  for (const auto& c : connections) shares.push_back(static_cast<double>(c->server().received()));
  return {{"queue_mean", mean(queue)},
          {"queue_p50", percentile(queue, 0.5)},
          {"queue_p95", percentile(queue, 0.95)},
          {"queue_p99", percentile(queue, 0.99)},
          {"throughput_mbps",
           static_cast<double>(receivedBy(connections) - before) * 8e-6 / (seconds - warmUp)},
          {"marked_share",
           static_cast<double>(tree.bottleneck().marked() - marks) /
               static_cast<double>(std::max<uint64_t>(tree.bottleneck().in() - arrivals, 1))},
          {"dropped", tree.bottleneck().dropped() - drops},
          {"timeouts", timeoutsOf(connections)},
          {"jain", jain(shares)},
          {"hash", tree.hash()}};
}

Json runTcpIncast(const TcpParams& p) {
  TcpSetting setting = settingOf(p, kIncast);
  RackTreeOptions rack = rackOf(p, setting);
  RackTree tree(rack, p.seed);
  Random starts(p.seed);
  Connections connections;
  for (size_t i = 0; i < rack.senders; ++i) connect(connections, tree, i, tcpOptionsOf(p));
  tree.run(kRoundPause);
  std::vector<double> times;
  size_t incomplete = 0;
  for (size_t round = 0; round < p.rounds; ++round) {
    Time begin = tree.now(), last = begin;
    size_t arrived = 0;
    for (auto& c : connections) {
      tree.after(startOf(setting, starts), [&, sender = c.get()] {
        sender->client().send(p.bytes, [&](const tcp::Message& m) { ++arrived, last = m.end; });
      });
    }
    while (arrived < connections.size() && tree.now() - begin < kRoundLimit) tree.run(1ms);
    if (arrived < connections.size()) {
      ++incomplete, last = tree.now();
      break;  // otherwise the rest of this round would be part of the next
    }
    times.push_back(toMilliseconds(last - begin));
    tree.run(kRoundPause);
  }
  return {{"completion_ms", mean(times)},
          {"completion_p50_ms", percentile(times, 0.5)},
          {"completion_max_ms", percentile(times, 1)},
          {"rounds", times.size()},
          {"incomplete", incomplete},
          {"timeouts", timeoutsOf(connections)},
          {"dropped", tree.bottleneck().dropped()},
          {"hash", tree.hash()}};
}

/// Runs a flow in its own connection. True when it has a timeout, at which the run ends.
bool timesOut(const TcpParams& p, uint64_t seed, bool lossy, uint64_t& hash) {
  constexpr Duration kHandshake = 10ms, kGiveUp = 10s, kStep = 100us;
  TcpSetting setting = settingOf(p, kTimeouts);
  LinkOptions link{.rateBitsPerSecond = setting.rate,
                   .delay = fromSeconds(setting.rtt * 1e-6 / 2),
                   .queueBytes = setting.queue * kWirePacket};
  WiredPair net(link, link, seed);
  tcp::Connection connection(net, net.left(), net.right(), {kClientPort, kClientPort},
                             tcpOptionsOf(p));
  net.run(kHandshake);
  Random losses(seed ^ 0x6c6f7373);
  net.left().onSend = [&](ByteView, const InnerPacket& ip) {
    return ip.payloadLength == 0 || !lossy || !losses.chance(p.loss);
  };
  bool arrived = false;
  connection.client().send(p.bytes, [&](const tcp::Message&) { arrived = true; });
  Time end = net.now() + kGiveUp;
  while (!arrived && connection.client().stats().timeouts == 0 && net.now() < end) net.run(kStep);
  hash = (hash ^ net.hash()) * 0x9e3779b97f4a7c15;
  return connection.client().stats().timeouts > 0;
}

Json runTcpTimeouts(const TcpParams& p) {
  Random random(p.seed);
  uint64_t hash = 0;
  size_t timedOut = 0;
  for (size_t i = 0; i < p.flows; ++i) {
    bool lossy = random.below(p.paths) == 0;
    timedOut += timesOut(p, random.next(), lossy, hash);
  }
  uint64_t segment = tcp::Options{}.mss - (p.timestamps ? kTimestampBytes : 0);
  uint64_t packets = (p.bytes + segment - 1) / segment;
  TimeoutModel model{.loss = p.loss, .packets = static_cast<double>(packets), .paths = p.paths};
  return {{"flows", p.flows},
          {"timed_out", timedOut},
          {"timeout_share", static_cast<double>(timedOut) / static_cast<double>(p.flows)},
          {"closed_form", model.tcp()},
          {"hash", hash}};
}

constexpr TcpExperiment kTcpExperiments[] = {
    {"lossy-path",
     "one bulk flow, data packets lost at random; goodput_mbps: payload in order at the receiver "
     "from the "
     "SYN on",
     runLossyPath},
    {"dctcp-queue",
     "bulk flows into one port, which marks above K waiting packets; queue_*: packets that wait, "
     "the one in "
     "transmission not counted, looked at once a packet time after a quarter of the time; "
     "throughput_mbps: "
     "payload "
     "in order at the receiver in that time",
     runDctcpQueue},
    {"incast",
     "senders answer over open connections at almost the same time, in rounds 2 s apart; "
     "completion_ms: mean "
     "over the "
     "rounds, "
     "from the begin until the last answer has arrived; timeouts: of all rounds",
     runTcpIncast},
    {"permutation",
     "each host of a fat tree (k = 4) has a bulk flow to another host, by per-flow ECMP; "
     "goodput_mbps: of "
     "each flow, "
     "payload in order at the receiver, after a quarter of the time; routes: which switches they "
     "and their "
     "ACKs pass",
     runTcpPermutation},
    {"timeouts",
     "flows of connections of their own, one after the other; timeout_share: those in which a "
     "timer expired; "
     "closed_form: FUSO's, sections II-B and IV",
     runTcpTimeouts},
};

}  // namespace

tcp::Options tcpOptionsOf(const TcpParams& p) {
  tcp::Options o = tcp::recoveryOptions(p.recovery);
  o.control = tcp::controlOf(p.control);
  o.ecn = o.ecnEverywhere = o.control == tcp::Control::kDctcp;
  o.minRto = fromSeconds(p.minRto * 1e-3);
  o.delayedAcks = p.delayedAcks;
  o.ackDelay = fromSeconds(p.ackDelay * 1e-3);
  o.timestamps = p.timestamps;
  o.initialWindow = p.initialWindow;
  o.content = false;
  return o;
}

std::span<const TcpExperiment> tcpExperiments() {
  return kTcpExperiments;
}

}  // namespace braid::sim
