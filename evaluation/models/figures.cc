#include "evaluation/models/figures.h"

#include <cmath>
#include <numeric>
#include <sstream>

namespace braid::sim {

Counters::Counters(const Node& node) {
  for (const PeerStatus& peer : node.status().peers) {
    addCounters<OutboundCounts>(*this, peer);
    for (const SubflowStatus& s : peer.subflows) {
      addCounters<SendCounts>(*this, s);
      addCounters<ProtectionCounts>(*this, s);
    }
  }
}

Counters& Counters::operator+=(const Counters& b) {
  addCounters<OutboundCounts>(*this, b);
  addCounters<SendCounts>(*this, b);
  addCounters<ProtectionCounts>(*this, b);
  return *this;
}

Counters Counters::operator-(const Counters& b) const {
  Counters difference = *this;
  subtractCounters<OutboundCounts>(difference, b);
  subtractCounters<SendCounts>(difference, b);
  subtractCounters<ProtectionCounts>(difference, b);
  return difference;
}

namespace {
double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double rounded(double v) {
  return std::round(v * 1e6) / 1e6;
}
}  // namespace

void Figures::add(const FlowResult& flow) {
  times_.push_back(flow.seconds);
  incomplete_ += !flow.complete;
  withTimeout_ += flow.timeout;
  withLoss_ += flow.sender.lostPackets > 0;
  withRecovery_ += flow.sender.recovered > 0;
  sum_ += flow.sender;
}

void Figures::add(double seconds, bool complete) {
  times_.push_back(seconds);
  incomplete_ += !complete;
  apart_ = false;
}

Json Figures::json() const {
  auto share = [](auto a, auto b) {
    return rounded(ratio(static_cast<double>(a), static_cast<double>(b)));
  };
  std::ostringstream hash;
  hash << std::hex << hash_;
  Json j;
  j["flows"] = times_.size();
  j["incomplete"] = incomplete_;
  j["p50"] = rounded(percentile(times_, 0.5));
  j["p95"] = rounded(percentile(times_, 0.95));
  j["p99"] = rounded(percentile(times_, 0.99));
  j["p999"] = rounded(percentile(times_, 0.999));
  j["max"] = rounded(percentile(times_, 1));
  j["mean"] = share(std::accumulate(times_.begin(), times_.end(), 0.0), times_.size());
  if (apart_) {
    j["timeout_share"] = share(withTimeout_, times_.size());
    j["loss_share"] = share(withLoss_, times_.size());
    j["recovery_share"] = share(withRecovery_, times_.size());
  }
  j["extra_load"] = share(sum_.protectionBytes, sum_.sentBytes);
  j["recovered_share"] = share(sum_.recovered, sum_.lostPackets);
  j["useful_share"] = share(sum_.recovered, sum_.copies + sum_.parities);
  j["sent"] = sum_.sentPackets;
  j["lost"] = sum_.lostPackets;
  j["spurious"] = sum_.spuriousLosses;
  j["timeouts"] = sum_.timeouts;
  j["repaired"] = sum_.retransmitted;
  j["copies"] = sum_.copies;
  j["parities"] = sum_.parities;
  j["protected"] = sum_.protectedPackets;
  j["recovered"] = sum_.recovered;
  j["decoded"] = sum_.decoded;
  j["useless"] = sum_.useless;
  j["hash"] = hash.str();
  return j;
}

}  // namespace braid::sim
