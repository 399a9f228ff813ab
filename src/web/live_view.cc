#include "web/views.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ctl/views/views.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

using Json = nlohmann::json;

// What is counted of a path, and of a peer.
enum Which : size_t { kOut, kIn, kSent, kLost, kSpurious, kRecovered };
enum OfPeer : size_t { kAgain = kIn + 1, kAgainMicroseconds, kUndelivered };

std::string peerKey(const Json& peer) {
  return wordOf(peer, kKeyOf<&PeerStatus::name>);
}
std::string pathKey(const Json& peer, const Json& path) {
  return peerKey(peer) + "\n" + wordOf(path, kKeyOf<&SubflowStatus::id>);
}

// Copies members that are shown as the daemon gave them.
void copy(Json& out, const Json& from, std::initializer_list<const char*> names) {
  for (const char* name : names) out[name] = fieldOf(from, name);
}

// A sum of milliseconds; 0 if it is none.
uint64_t microsecondsOf(const Json& from, const char* name) {
  const double ms = numberOf(from, name, 0);
  return ms > 0 && ms < 1e15 ? static_cast<uint64_t>(ms * 1000) : 0;
}

Json shareOf(uint64_t part, uint64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json(nullptr);
}

double rateOf(const Json& row) {
  return numberOf(row, "up_bytes_per_s", 0) + numberOf(row, "down_bytes_per_s", 0);
}

}  // namespace

void LiveView::addStatus(Answers::Shared status) {
  if (status_ && status_->at == status->at) return;
  status_ = std::move(status);
  Look look{status_->at, {}};
  for (const Json& peer : listOf(status_->value, "peers")) {
    look.counts[peerKey(peer)] = {countOf(peer, kKeyOf<&CarriedCounts::sentBytes>),
                                  countOf(peer, kKeyOf<&CarriedCounts::receivedBytes>),
                                  countOf(peer, kKeyOf<&OutboundCounts::retransmitted>),
                                  microsecondsOf(peer, kKeyOf<&OutboundCounts::retransmitDelay>),
                                  countOf(peer, kKeyOf<&OutboundCounts::undelivered>)};
    for (const Json& path : listOf(peer, "subflows")) {
      look.counts[pathKey(peer, path)] = {countOf(path, kKeyOf<&SendCounts::sentBytes>),
                                          countOf(path, kKeyOf<&ReceiveCounts::receivedBytes>),
                                          countOf(path, kKeyOf<&SendCounts::sentPackets>),
                                          countOf(path, kKeyOf<&SendCounts::lostPackets>),
                                          countOf(path, kKeyOf<&SendCounts::spuriousLosses>),
                                          countOf(path, kKeyOf<&ProtectionCounts::recovered>)};
    }
  }
  if (status_->problem.empty()) keep(looks_, std::move(look), kLossSeconds);
}

void LiveView::addFlows(Answers::Shared flows) {
  if (flows_ && flows_->at == flows->at) return;
  flows_ = std::move(flows);
  Look look{flows_->at, {}};
  flowRows_ = flowRows(flows_->value);
  for (const Json& row : flowRows_)
    look.counts[flowKey(row)] = {countOf(row, kKeyOf<&StreamStatus::sentBytes>),
                                 countOf(row, kKeyOf<&StreamStatus::receivedBytes>)};
  names_.refresh();
  if (flows_->problem.empty()) keep(flowLooks_, std::move(look), kRateSeconds * 2);
}

// Keeps all of the newest answers, and of older ones about one per kSpacing.
void LiveView::keep(std::deque<Look>& looks, Look look, double window) {
  size_t n = looks.size();
  double fresh = look.at - kRateSeconds * 2;
  if (n >= 3 && looks[n - 2].at < fresh && looks[n - 2].at - looks[n - 3].at < kSpacing)
    looks.erase(looks.end() - 2);
  looks.push_back(std::move(look));
  while (looks.front().at < looks.back().at - window) looks.pop_front();
}

// The growth over at least `seconds`, or over the time that is known.
LiveView::Growth LiveView::growthOf(const std::deque<Look>& looks, const std::string& key,
                                    double seconds) {
  if (looks.size() < 2) return {};
  auto last = looks.back().counts.find(key);
  if (last == looks.back().counts.end()) return {};
  Growth out;
  for (size_t i = looks.size() - 1; i-- > 0 && out.seconds < seconds;) {
    double span = looks.back().at - looks[i].at;
    auto before = looks[i].counts.find(key);
    if (span > 3 * seconds) break;  // nobody looked in between: it says nothing about now
    if (before == looks[i].counts.end()) break;
    bool restarted = false;
    Counters grown{};
    for (size_t c = 0; c < grown.size(); ++c) {
      restarted |= before->second[c] > last->second[c];
      grown[c] = last->second[c] - before->second[c];
    }
    if (restarted) break;
    out = {span, grown};
  }
  return out;
}

Json LiveView::rate(const Growth& growth, size_t which) {
  if (growth.seconds <= 0) return nullptr;
  return static_cast<double>(growth.counters[which]) / growth.seconds;
}

// What was lost on the path or paths, and of that, what was repaired before the sender knew.
void LiveView::putLosses(Json& row, const Counters& c) {
  uint64_t lost = c[kLost] - std::min(c[kLost], c[kSpurious]);
  row["minute_lost_packets"] = lost;
  row["minute_recovered_packets"] = std::min(lost, c[kRecovered]);
  row["lost_share"] = shareOf(lost, c[kSent]);
  row["recovered_share"] = shareOf(std::min(lost, c[kRecovered]), lost);
}

Json LiveView::peerRow(const Json& peer) const {
  Json row;
  copy(row, peer,
       {kKeyOf<&PeerStatus::name>, kKeyOf<&PeerStatus::up>, kKeyOf<&PeerStatus::group>,
        kKeyOf<&PeerStatus::inUse>, kKeyOf<&SessionStatus::age>, kKeyOf<&SessionStatus::flowCount>,
        kKeyOf<&SessionStatus::streamCount>, kKeyOf<&SessionStatus::heldPackets>,
        kKeyOf<&CarriedCounts::sentBytes>, kKeyOf<&CarriedCounts::receivedBytes>});
  Growth growth = growthOf(looks_, peerKey(peer), kRateSeconds);
  row["up_bytes_per_s"] = rate(growth, kOut);
  row["down_bytes_per_s"] = rate(growth, kIn);
  size_t active = 0;
  const Json::array_t& paths = listOf(peer, "subflows");
  for (const Json& path : paths) active += wordOf(path, kKeyOf<&SubflowStatus::state>) == "active";
  row["paths"] = paths.size();
  row["active_paths"] = active;
  return row;
}

Json LiveView::pathRow(const Json& peer, const Json& path) const {
  Json row;
  copy(row, path,
       {kKeyOf<&SubflowStatus::id>,
        kKeyOf<&SubflowStatus::path>,
        kKeyOf<&SubflowStatus::uplink>,
        kKeyOf<&SubflowStatus::local>,
        kKeyOf<&SubflowStatus::remote>,
        kKeyOf<&SubflowStatus::observed>,
        kKeyOf<&SubflowStatus::state>,
        kKeyOf<&SubflowStatus::down>,
        kKeyOf<&SubflowStatus::srtt>,
        kKeyOf<&SubflowStatus::minRtt>,
        kKeyOf<&SubflowStatus::queueDelay>,
        kKeyOf<&SubflowStatus::mtu>,
        kKeyOf<&SubflowStatus::resting>,
        kKeyOf<&SubflowStatus::suppressed>,
        kKeyOf<&SendCounts::sentPackets>,
        kKeyOf<&SendCounts::sentBytes>,
        kKeyOf<&ReceiveCounts::receivedBytes>,
        kKeyOf<&SendCounts::lostPackets>,
        kKeyOf<&ProtectionCounts::recovered>,
        "use"});
  row["peer"] = peerKey(peer);
  std::string key = pathKey(peer, path);
  Growth now = growthOf(looks_, key, kRateSeconds), minute = growthOf(looks_, key, kLossSeconds);
  row["up_bytes_per_s"] = rate(now, kOut);
  row["down_bytes_per_s"] = rate(now, kIn);
  putLosses(row, minute.counters);
  // Of a path that does not work, what was measured is of the past.
  if (wordOf(path, kKeyOf<&SubflowStatus::state>) != "active") {
    for (const char* name : {kKeyOf<&SubflowStatus::srtt>, kKeyOf<&SubflowStatus::minRtt>,
                             kKeyOf<&SubflowStatus::queueDelay>, "lost_share", "recovered_share",
                             "up_bytes_per_s", "down_bytes_per_s"})
      row[name] = nullptr;
  }
  return row;
}

namespace {

// Keeps what does not work, but no more of it than half of `most`, and the busiest.
template <typename IsAway>
void keepAwayAndBusiest(Json::array_t& rows, size_t most, IsAway isAway) {
  size_t away = 0;
  keepBusiest(rows, most, [&](const Json& row) {
    const bool isKept = isAway(row) && away++ < most / 2;
    return isKept ? std::numeric_limits<double>::max() : rateOf(row);
  });
}

}  // namespace

Json LiveView::peersOf(const Json& status) const {
  Json::array_t rows;
  for (const Json& peer : listOf(status, "peers")) rows.push_back(peerRow(peer));
  keepAwayAndBusiest(rows, kPeers,
                     [](const Json& row) { return !flagOf(row, kKeyOf<&PeerStatus::up>); });
  return rows;
}

Json LiveView::pathsOf(const Json& status, const std::string& wanted) const {
  Json::array_t rows;
  for (const Json& peer : listOf(status, "peers")) {
    if (!wanted.empty() && peerKey(peer) != wanted) continue;
    for (const Json& path : listOf(peer, "subflows")) rows.push_back(pathRow(peer, path));
  }
  keepAwayAndBusiest(rows, kPaths, [](const Json& row) {
    return wordOf(row, kKeyOf<&SubflowStatus::state>) != "active";
  });
  return rows;
}

// Adds the flows and streams of the selected peers, by rate: those that are idle, which the page
// folds away, apart.
void LiveView::putFlows(Json& out, const std::string& wanted) const {
  Json::array_t busy, idle;
  for (Json row : flowRows_) {
    if (!wanted.empty() && wordOf(row, "peer") != wanted) continue;
    Growth growth = growthOf(flowLooks_, flowKey(row), kRateSeconds);
    row["up_bytes_per_s"] = rate(growth, kOut);
    if (row.contains(kKeyOf<&StreamStatus::receivedBytes>))
      row["down_bytes_per_s"] = rate(growth, kIn);
    (isIdle(row) ? idle : busy).push_back(std::move(row));
  }
  out["totals"]["idle"] = idle.size();
  for (auto [name, rows] : {std::pair("flows", &busy), std::pair("idle_flows", &idle)}) {
    keepBusiest(*rows, kFlows, rateOf);
    std::stable_sort(rows->begin(), rows->end(),
                     [](const Json& a, const Json& b) { return rateOf(a) > rateOf(b); });
    for (Json& row : *rows) row["shown"] = names_.inFlow(wordOf(row, kKeyOf<&FlowStatus::name>));
    out[name] = std::move(*rows);
  }
}

// Sums over all selected peers, whether they are listed or not.
Json LiveView::totals(const Json& status, const std::string& wanted) const {
  uint64_t peers = 0, up = 0, paths = 0, active = 0, flows = 0, streams = 0;
  double out = 0, in = 0;
  bool isKnown = false;
  Counters minute{}, ofPeers{};
  for (const Json& peer : listOf(status, "peers")) {
    if (!wanted.empty() && peerKey(peer) != wanted) continue;
    ++peers;
    up += flagOf(peer, kKeyOf<&PeerStatus::up>);
    flows += countOf(peer, kKeyOf<&SessionStatus::flowCount>);
    streams += countOf(peer, kKeyOf<&SessionStatus::streamCount>);
    Growth growth = growthOf(looks_, peerKey(peer), kRateSeconds);
    if (growth.seconds > 0) {
      isKnown = true;
      out += static_cast<double>(growth.counters[kOut]) / growth.seconds;
      in += static_cast<double>(growth.counters[kIn]) / growth.seconds;
    }
    growth = growthOf(looks_, peerKey(peer), kLossSeconds);
    for (size_t i = 0; i < ofPeers.size(); ++i) ofPeers[i] += growth.counters[i];
    for (const Json& path : listOf(peer, "subflows")) {
      ++paths;
      active += wordOf(path, kKeyOf<&SubflowStatus::state>) == "active";
      Growth grown = growthOf(looks_, pathKey(peer, path), kLossSeconds);
      for (size_t i = 0; i < minute.size(); ++i) minute[i] += grown.counters[i];
    }
  }
  Json totals = {{"peers", peers},         {"peers_up", up}, {"paths", paths},
                 {"active_paths", active}, {"flows", flows}, {"streams", streams}};
  totals["up_bytes_per_s"] = isKnown ? Json(out) : Json(nullptr);
  totals["down_bytes_per_s"] = isKnown ? Json(in) : Json(nullptr);
  putLosses(totals, minute);
  totals["minute_retransmitted"] = ofPeers[kAgain];
  totals["retransmit_delay_ms"] = ofPeers[kAgain] > 0
                                      ? Json(static_cast<double>(ofPeers[kAgainMicroseconds]) /
                                             1000 / static_cast<double>(ofPeers[kAgain]))
                                      : Json(nullptr);
  totals["minute_undelivered"] = ofPeers[kUndelivered];
  return totals;
}

Json LiveView::view(const std::string& peer) const {
  Json out = {
      {"at_unix_s", status_ ? Json(status_->at) : Json(nullptr)},
      {"problem", status_ && !status_->problem.empty() ? Json(status_->problem) : Json(nullptr)}};
  if (!status_ || !status_->problem.empty()) return out;
  const Json& status = status_->value;
  out["gateway"] = fieldOf(status, "gateway");
  out["totals"] = totals(status, peer);
  out["peer_count"] = listOf(status, "peers").size();
  out["peers"] = peersOf(status);
  out["paths"] = pathsOf(status, peer);
  putFlows(out, peer);
  return out;
}

}  // namespace braid
