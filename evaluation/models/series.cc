#include "evaluation/models/series.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace braid::sim {

namespace {
SubflowStatus statusOf(const Node& node, unsigned subflow) {
  TunnelStatus status = node.status();
  for (SubflowStatus& s : status.peers.at(0).subflows) {
    if (s.id == subflow) return s;
  }
  throw std::runtime_error("no subflow " + std::to_string(subflow));
}
}  // namespace

unsigned subflowOn(const Network::Pair& pair, const std::string& uplink) {
  TunnelStatus status = pair.client->status();
  for (const SubflowStatus& s : status.peers.at(0).subflows) {
    if (s.uplink == uplink) return s.id;
  }
  throw std::runtime_error("no subflow on " + uplink);
}

SubflowStatus serverStatus(const Network::Pair& pair, unsigned subflow) {
  return statusOf(*pair.server, subflow);
}

Series::Series(World& world, const SeriesOptions& options, Duration usual)
    : world_(world),
      out_(options.out),
      interval_(options.interval > 0ns ? options.interval : usual) {}

void Series::watch(std::string label, const Network::Pair& pair, const std::string& uplink,
                   SharedLink& bottleneck) {
  if (out_)
    watched_.push_back({std::move(label), pair.server, subflowOn(pair, uplink), &bottleneck});
}

void Series::begin() {
  begun_ = world_.now();
  if (out_) look();
}

void Series::look() {
  for (const Watched& w : watched_) {
    SubflowStatus s = statusOf(*w.server, w.subflow);
    nlohmann::ordered_json line = {{"t", toSeconds(world_.now() - begun_)},
                                   {"subflow", w.label},
                                   {"window", s.window},
                                   {"inflight", s.inFlight},
                                   {"rate", s.pacingRate},
                                   {"delivery", s.deliveryRate},
                                   {"rtt", toSeconds(s.srtt)},
                                   {"queue", w.bottleneck->stats(world_.now()).queueBytes}};
    *out_ << line.dump() << '\n';
  }
  world_.after(interval_, [this] { look(); });
}

}  // namespace braid::sim
