#include "evaluation/fabric/scheme_traffic.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "evaluation/models/network.h"
#include "evaluation/models/params.h"
#include "evaluation/models/raw_flows.h"
#include "simnet/tcp/rivals.h"

namespace braid::sim {

namespace {

constexpr const char* kSchemes[] = {"tcp",  "tlp",  "tcp-ir", "proactive", "repflow",
                                    "none", "fuso", "cofuso", "adaptive"};
// number of trafficSchemes(), from the first on, that are plain TCP
constexpr size_t kTcpSchemes = 5;
/// Buffers that a gateway has for each packet that its flows keep queued: only a quarter of the
/// pool may be queued. In the papers hosts send for themselves, and a full socket makes the
/// application wait. Here nobody would resend a packet that a gateway drops because it is full, so
/// run() throws in that case.
constexpr size_t kBuffersOfQueued = 4;
constexpr size_t kLaneBytes = 1 << 30;
/// Segments of a flow in its gateway and in flight: more than a path of 10 Gbit/s and 0.24 ms with
/// a full port queue of 1 MB holds. With fewer the tunnel would run out of new data and fill its
/// windows with copies.
constexpr size_t kFlowAhead = 1024;
/// All connections exist before the first flow and before any losses (section VI-B.1:
/// "long-lived"). They are opened in this time.
constexpr Duration kOpens = 200ms;
constexpr uint16_t kFirstTrafficPort = 1000;
constexpr uint64_t kRequest = 100;

bool isTcp(const std::string& scheme) {
  return std::find(kSchemes, kSchemes + kTcpSchemes, scheme) != kSchemes + kTcpSchemes;
}

tcp::Options tcpOptions(const std::string& scheme, const SchemeTrafficOptions& options) {
  tcp::Options o = tcp::recoveryOptions(scheme == "repflow" ? "tcp" : scheme);
  o.correctiveBin = options.correctiveBin;
  o.ecn = options.ecn;
  o.initialWindow = options.tcpWindow;
  o.minRto = options.minRto;
  o.minProbe = 0ms;       // with the draft's 10 ms the retransmission timer would fire first
  o.delayedAcks = false;  // as in ns-2's sinks
  o.maxAckDelay = 0ms;
  o.content = false;
  return o;
}

}  // namespace

std::span<const char* const> trafficSchemes() {
  return kSchemes;
}

SchemeTraffic::SchemeTraffic(const SchemeTrafficOptions& options, const Topology& topology,
                             std::vector<HostFlow> flows)
    : options_(options),
      world_(options.seed),
      network_(world_, topology, Random(options.seed).next()),
      hosts_(world_, network_),
      gateways_(world_, network_, options.subflows),
      flows_(std::move(flows)),
      port_(kFirstTrafficPort) {
  if (std::ranges::find(kSchemes, options_.scheme) == std::end(kSchemes))
    throw std::runtime_error("no scheme " + options_.scheme);
  if (!isTcp(options_.scheme)) startGateways();
}

void SchemeTraffic::startGateways() {
  Params params;
  params.policy = options_.scheme;
  params.minRto = toMilliseconds(options_.minRto);
  TunnelOptions options = tunnelOptions(params, "newreno", options_.subflowWindow);
  options.recoveryOptions = options_.recovery;
  options.queueBytes = options.holdBytes = kLaneBytes;
  std::vector<size_t> ahead(network_.hosts());
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const HostFlow& f : flows_) {
    if (!isByScheme(f)) continue;
    pairs.emplace_back(f.client, f.server);
    ahead[f.server] += kFlowAhead;
  }
  for (size_t buffers : ahead)
    gateways_.add(options).poolLimit = options_.gatewayBuffers + kBuffersOfQueued * buffers;
  gateways_.start(std::move(pairs));
}

void SchemeTraffic::run() {
  Time start = world_.now() + kOpens;
  for (HostFlow& flow : flows_) {
    flow.begin = start + (flow.begin - Time{});
    isByScheme(flow) && !isTcp(options_.scheme) ? sendByTunnel(flow) : sendByTcp(flow);
  }
  world_.run(kOpens);
  for (const tcp::Connection* c : connections_) {
    if (!c->client().established()) throw std::runtime_error("a connection does not come up");
  }
  for (const auto& [cable, rate] : options_.lossy) {
    LinkOptions losses;
    losses.loss = rate;
    network_.ports()[cable].setLosses(losses);
  }
  before_ = tunnels();
  Time end = (flows_.empty() ? start : flows_.back().begin) + options_.patience;
  bool complete = world_.runUntil([&] { return done_ == flows_.size(); }, end - world_.now());
  if (!complete) world_.run(end - world_.now());
  requireSound(world_);
  for (size_t h = 0; h < gateways_.size(); ++h) {
    DropCounts drops = gateways_.at(h).status().drops;
    for (Drop drop : {Drop::kQueueFull, Drop::kNoBuffer, Drop::kAqm, Drop::kFlowTableFull,
                      Drop::kHoldOverflow}) {
      if (drops[static_cast<size_t>(drop)] > 0)
        throw std::runtime_error("a gateway had no room for segments that nobody sends again");
    }
  }
}

uint16_t SchemeTraffic::nextPort() {
  if (port_ == UINT16_MAX) port_ = kFirstTrafficPort;
  return port_++;
}

void SchemeTraffic::finish(HostFlow& flow) {
  if (flow.end != kNever) return;
  flow.end = world_.now();
  ++done_;
}

void SchemeTraffic::sendByTunnel(HostFlow& flow) {
  world_.at(flow.begin, [this, &flow, port = nextPort()] {
    Node& server = gateways_.at(flow.server);
    MessageOptions message{.bytes = flow.bytes, .mss = segmentSize(server), .ahead = kFlowAhead};
    auto& run = world_.add<MessageFlow>(gateways_.at(flow.client), server, port, message);
    run.onDone = [this, &flow] { finish(flow); };
  });
}

tcp::Connection& SchemeTraffic::connectionFor(const HostFlow& flow, size_t copy) {
  bool byScheme = isByScheme(flow);
  tcp::Connection*& open = open_[{flow.client, flow.server, byScheme, copy}];
  if (open && options_.longLived) return *open;
  uint16_t port = nextPort();
  tcp::Connection::Ports ports{port, port};
  open = &world_.add<tcp::Connection>(hosts_.at(flow.client), hosts_.at(flow.server), ports,
                                      tcpOptions(byScheme ? options_.scheme : "tcp", options_));
  connections_.push_back(open);
  return *open;
}

// The client sends a small request; the server sends the response, whose time is measured. RepFlow
// sends small flows twice, over two connections. All other flows are sent once.
void SchemeTraffic::sendByTcp(HostFlow& flow) {
  bool twice = isByScheme(flow) && options_.scheme == "repflow" && flow.bytes <= kSmall;
  size_t copies = twice ? 2 : 1;
  for (size_t i = 0; i < copies; ++i) {
    world_.at(flow.begin, [this, &flow, &connection = connectionFor(flow, i)] {
      connection.client().send(kRequest, [this, &flow, &connection](const tcp::Message&) {
        connection.server().send(flow.bytes, [this, &flow](const tcp::Message&) { finish(flow); });
      });
    });
  }
}

/// The counters of the servers' gateways.
Counters SchemeTraffic::tunnels() const {
  std::set<size_t> servers;
  for (const HostFlow& flow : flows_) servers.insert(flow.server);
  Counters sum;
  for (size_t h : servers) {
    if (h < gateways_.size()) sum += Counters(gateways_.at(h));
  }
  return sum;
}

Json SchemeTraffic::json() const {
  std::vector<double> small, medium, large;
  uint64_t incomplete = 0, incompleteSmall = 0;
  for (const HostFlow& f : flows_) {
    bool complete = f.end != kNever;
    incomplete += !complete;
    incompleteSmall += !complete && f.bytes <= kSmall;
    double seconds = toSeconds((complete ? f.end : world_.now()) - f.begin);
    (f.bytes <= kSmall ? small : f.bytes <= kMedium ? medium : large).push_back(seconds);
  }
  uint64_t lost = 0, dropped = 0;
  for (const Port& port : network_.ports())
    lost += port.counters().lost, dropped += port.counters().dropped;
  uint64_t timeouts = 0;
  for (const tcp::Connection* c : connections_) timeouts += c->server().stats().timeouts;
  Counters sent = tunnels() - before_;
  auto protection = static_cast<double>(sent.protectionBytes);
  return {{"flows", flows_.size()},
          {"incomplete", incomplete},
          {"small", small.size()},
          {"incomplete_small", incompleteSmall},
          {"mean_small", mean(small)},
          {"p50_small", percentile(small, 0.5)},
          {"p99_small", percentile(small, 0.99)},
          {"medium", medium.size()},
          {"mean_medium", mean(medium)},
          {"large", large.size()},
          {"mean_large", mean(large)},
          {"tcp_timeouts", timeouts},
          {"lost", lost},
          {"dropped", dropped},
          {"hops", network_.hops()},
          {"tunnel_timeouts", sent.timeouts},
          {"extra_load", protection / std::max<double>(static_cast<double>(sent.sentBytes), 1)},
          {"hash", network_.hash()}};
}

}  // namespace braid::sim
