#include "ctl/views/views.h"

#include <algorithm>
#include <sstream>

#include "ctl/views/format.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {

namespace {

using Json = nlohmann::json;

Json namedIn(const Json::array_t& list, const char* key, const std::string& name) {
  for (const Json& item : list)
    if (textOf(item, key) == name) return item;
  return {};
}

// How much a counter grew; one that decreased has restarted at 0.
uint64_t growth(const Json& now, const Json& before, const char* key) {
  uint64_t a = countOf(before, key), b = countOf(now, key);
  return b >= a ? b - a : b;
}

// `before`: null of what began since then, and counts from 0.
std::string rateSince(const Json& now, const Json& before, const char* key, double seconds) {
  if (seconds <= 0) return "-";
  return formatRate(static_cast<double>(growth(now, before, key)) / seconds);
}

// Packets lost in the window, and those of them that were repaired before the sender knew.
struct Losses {
  uint64_t sent = 0, lost = 0, repaired = 0;
};

Losses lossesOf(const Json& now, const Json& then) {
  Losses out;
  out.sent = growth(now, then, kKeyOf<&SendCounts::sentPackets>);
  out.lost = growth(now, then, kKeyOf<&SendCounts::lostPackets>);
  out.lost -= std::min(out.lost, growth(now, then, kKeyOf<&SendCounts::spuriousLosses>));
  out.repaired = std::min(out.lost, growth(now, then, kKeyOf<&ProtectionCounts::recovered>));
  return out;
}

Json peerIn(const TopLook& look, const std::string& name) {
  return namedIn(listOf(look.status, "peers"), kKeyOf<&PeerStatus::name>, name);
}

std::string pathsTable(const TopLook& now, const TopLook& last, const TopLook& oldest) {
  Table table(
      {"PEER", "PATH", "STATE", ">UP", ">DOWN", ">RTT", ">QUEUE", ">LOST", ">REPAIRED", ">MTU"});
  double seconds = now.at - last.at;
  for (const Json& peer : listOf(now.status, "peers")) {
    std::string name = textOf(peer, kKeyOf<&PeerStatus::name>);
    const Json lastPeer = peerIn(last, name), oldestPeer = peerIn(oldest, name);
    const Json::array_t &was = listOf(lastPeer, "subflows"),
                        &longAgo = listOf(oldestPeer, "subflows");
    for (const Json& s : listOf(peer, "subflows")) {
      std::string id = textOf(s, kKeyOf<&SubflowStatus::id>);
      Json before = namedIn(was, kKeyOf<&SubflowStatus::id>, id);
      Losses losses = lossesOf(s, namedIn(longAgo, kKeyOf<&SubflowStatus::id>, id));
      const bool isActive = textOf(s, kKeyOf<&SubflowStatus::state>) == "active";
      std::string state = pathState(s);
      if (isActive && flagOf(s, kKeyOf<&SubflowStatus::resting>)) state += ", rests";
      std::vector<std::string> cells{
          name,
          pathName(s),
          state,
          rateSince(s, before, kKeyOf<&SendCounts::sentBytes>, seconds),
          rateSince(s, before, kKeyOf<&ReceiveCounts::receivedBytes>, seconds),
          cell<&SubflowStatus::srtt>(s),
          cell<&SubflowStatus::queueDelay>(s),
          formatShare(losses.lost, losses.sent),
          formatShare(losses.repaired, losses.lost),
          textOf(s, kKeyOf<&SubflowStatus::mtu>)};
      // Of a path that does not work, what was measured is of the past.
      if (!isActive) std::fill(cells.begin() + 3, cells.end() - 1, "-");
      table.add(std::move(cells));
    }
  }
  return table.empty() ? "no path: no peer is up\n" : table.toString();
}

std::string peersTable(const TopLook& now, const TopLook& last) {
  Table table({"PEER", "STATE", ">UP", ">DOWN", ">PATHS", ">FLOWS", ">STREAMS", ">HELD", ">AGE"});
  double seconds = now.at - last.at;
  for (const Json& peer : listOf(now.status, "peers")) {
    std::string name = textOf(peer, kKeyOf<&PeerStatus::name>);
    Json before = peerIn(last, name);
    table.add({name, flagOf(peer, kKeyOf<&PeerStatus::up>) ? "up" : "down",
               rateSince(peer, before, kKeyOf<&CarriedCounts::sentBytes>, seconds),
               rateSince(peer, before, kKeyOf<&CarriedCounts::receivedBytes>, seconds),
               std::to_string(listOf(peer, "subflows").size()),
               textOf(peer, kKeyOf<&SessionStatus::flowCount>),
               textOf(peer, kKeyOf<&SessionStatus::streamCount>),
               cell<&SessionStatus::heldPackets>(peer), cell<&SessionStatus::age>(peer)});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

std::string headOf(const TopLook& now, TopView view) {
  Json gateway = fieldOf(now.status, "gateway");
  const char* shown = view == TopView::kPaths   ? "paths"
                      : view == TopView::kPeers ? "peers"
                                                : "flows";
  return "braid " + cell<&GatewayStatus::version>(gateway) + "  up " +
         cell<&GatewayStatus::uptime>(gateway) + "  " + shown +
         "   (p: paths, peers, flows; q: quit)";
}

// The line, cut to at most `columns` characters (not bytes) of UTF-8.
std::string clipped(const std::string& line, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80 && seen++ == columns)
      return line.substr(0, i);
  }
  return line;
}

}  // namespace

void TopScreen::add(TopLook look) {
  if (!looks_.empty() && look.at < looks_.back().at) looks_.clear();
  if (look.flows.is_object()) names_.refresh();
  looks_.push_back(std::move(look));
  while (looks_.size() > 2 && looks_.front().at < looks_.back().at - kWindow) looks_.pop_front();
}

std::vector<std::string> TopScreen::lines(TopView view, size_t rows, size_t columns) const {
  if (looks_.empty()) return {};
  const TopLook &now = looks_.back(), &last = looks_[looks_.size() > 1 ? looks_.size() - 2 : 0];
  std::string text = headOf(now, view) + "\n\n";
  switch (view) {
    case TopView::kPaths:
      text += pathsTable(now, last, looks_.front());
      break;
    case TopView::kPeers:
      text += peersTable(now, last);
      break;
    case TopView::kFlows:
      text += flowsText({now.at, now.flows}, {last.at, last.flows}, names_, false);
      break;
  }
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; out.size() < rows && std::getline(in, line);)
    out.push_back(clipped(line, columns));
  return out;
}

}  // namespace braid
