#include "evaluation/recovery/response_trace.h"

#include <algorithm>
#include <functional>

#include "evaluation/models/flows.h"

namespace braid::sim {

namespace {

std::pair<uint64_t, uint64_t> idOf(SubflowId subflow, PacketNumber pn) {
  return {subflow.value(), pn.value()};
}

struct Sink final : TraceSink {
  std::function<void(const TraceEvent&)> tell;
  void onTrace(const TraceEvent& event) override { tell(event); }
  void onStream(const StreamTrace&) override {}
};

/// Number of datagrams of this size that still fit into the windows of all subflows.
size_t freeIn(const Node& node, uint64_t datagram) {
  uint64_t sum = 0;
  const TunnelStatus status = node.status();
  for (const SubflowStatus& s : status.peers.at(0).subflows)
    sum += s.window > s.inFlight ? (s.window - s.inFlight) / datagram : 0;
  return sum;
}

}  // namespace

void FirstHit::onSender(const TraceEvent& e) {
  switch (e.kind) {
    case TraceEvent::Kind::kPacketLost:
      lost_.insert(idOf(e.subflow, e.pn));
      break;
    case TraceEvent::Kind::kCopySent:
      sent_.push_back({.isCopy = true, .of = idOf(e.subflow, e.pn), .as = idOf(e.on, e.onPn)});
      break;
    case TraceEvent::Kind::kParitySent:
      sent_.push_back({.parity = {e.block.value(), e.index}});
      break;
    default:
      break;
  }
}

void FirstHit::onReceiver(const TraceEvent& e) {
  if (e.kind == TraceEvent::Kind::kParityReceived) received_.emplace_back(e.block.value(), e.index);
  if (e.kind != TraceEvent::Kind::kBlockDecoded) return;
  auto last = std::find_if(received_.rbegin(), received_.rend(),
                           [&](const ParityId& p) { return p.first == e.block.value(); });
  if (last != received_.rend()) restored_.emplace_back(*last, idOf(e.subflow, e.pn));
}

std::optional<size_t> FirstHit::number() const {
  auto hits = [&](const Sent& s) {
    if (s.isCopy) return lost_.contains(s.of) && !lost_.contains(s.as);
    return std::ranges::any_of(
        restored_, [&](const auto& r) { return r.first == s.parity && lost_.contains(r.second); });
  };
  auto first = std::ranges::find_if(sent_, hits);
  if (first == sent_.end()) return std::nullopt;
  return static_cast<size_t>(first - sent_.begin()) + 1;
}

TracedFlow traceFlow(Connection& connection, const MessageOptions& message) {
  constexpr uint16_t kFlowPort = 1000;
  constexpr Duration kAfterwards = 200ms;  // late copies, the last ACKs, and all of Chances::kAfter
  World& world = connection.network.world;
  Node &client = *connection.pair.client, &server = *connection.pair.server;
  TracedFlow traced;
  FirstHit hit;
  Sink atServer, atClient;
  atServer.tell = [&](const TraceEvent& e) { hit.onSender(e); };
  atClient.tell = [&](const TraceEvent& e) { hit.onReceiver(e); };
  server.tunnel().setTrace(&atServer);
  client.tunnel().setTrace(&atClient);
  uint64_t datagram =
      server.status().peers.at(0).subflows.at(0).window / server.options.initialWindow;
  uint64_t before = Counters(server).innerSentPackets;
  uint64_t packets = (message.bytes + message.mss - 1) / message.mss;
  bool all = false;
  world.onWire = [&](Path&, bool up, const WireDatagram&) {
    if (up || all || Counters(server).innerSentPackets - before < packets) return;
    all = true;
    for (size_t i = 0; i < Chances::kAfter.size(); ++i)
      world.after(Chances::kAfter[i],
                  [&, i] { traced.chances.count[i] = freeIn(server, datagram); });
  };
  traced.result = runFlow(connection.network, connection.pair, kFlowPort, message, kAfterwards);
  world.onWire = nullptr;
  server.tunnel().setTrace(nullptr);
  client.tunnel().setTrace(nullptr);
  traced.firstHit = hit.number();
  return traced;
}

}  // namespace braid::sim
