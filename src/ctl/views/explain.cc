#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "ctl/views/format.h"
#include "ctl/views/views.h"
#include "gateway/control/history.h"

namespace braid {
namespace {

using Json = nlohmann::json;

// Limits above which something is reported.
constexpr double kBadLoss = 0.005;   // share of a step's packets
constexpr uint64_t kFewLosses = 3;   // in a step: fewer are chance
constexpr double kBadQueueMs = 150;  // and more than twice the path's least RTT
// Packets in a step, both directions together: a user would have noticed a stall.
constexpr uint64_t kBusyPackets = 50;
constexpr double kStepS = std::chrono::duration<double>(History::kStep).count();

// Steps and events whose time is after `until` have it of a clock that has been set back since.

// The steps of a path or peer that ended in the window, as objects.
std::vector<Json> stepsOf(const Json& answer, double since, double until) {
  std::vector<Json> steps;
  const Json::array_t& columns = listOf(answer, "columns");
  for (const Json& row : listOf(answer, "steps")) {
    Json step = Json::object();
    for (size_t i = 0; row.is_array() && i < row.size() && i < columns.size(); ++i)
      if (columns[i].is_string()) step[columns[i].get<std::string>()] = row[i];
    double end = numberOf(step, kKeyOf<&PathStep::until>);
    if (end >= since && end <= until + kStepS) steps.push_back(std::move(step));
  }
  return steps;
}

uint64_t recoveredIn(const Json& step) {
  return std::min(lostPackets(step), countOf(step, kKeyOf<&ProtectionCounts::recovered>));
}

struct Path {
  std::string peer, name;
  std::vector<Json> steps;
  Json troubles = Json::array();
  double leastRtt = 0;

  // Whether the path was busy in the step at time `t`, or in the one before or after it; the step
  // itself may not have ended.
  bool isBusyAt(double t) const {
    return std::any_of(steps.begin(), steps.end(), [&](const Json& s) {
      return std::abs(numberOf(s, kKeyOf<&PathStep::until>) - kStepS / 2 - t) <= 1.5 * kStepS &&
             countOf(s, kKeyOf<&SendCounts::sentPackets>) +
                     countOf(s, kKeyOf<&ReceiveCounts::receivedPackets>) >=
                 kBusyPackets;
    });
  }
  bool isOutAt(double t) const {
    return std::any_of(troubles.begin(), troubles.end(), [&](const Json& trouble) {
      if (trouble["kind"] != "silent" && trouble["kind"] != "gone") return false;
      return trouble["from_unix_s"] <= t &&
             (trouble["to_unix_s"].is_null() || trouble["to_unix_s"] > t);
    });
  }
  bool isThereAt(double t) const {
    return !isOutAt(t) && std::any_of(steps.begin(), steps.end(), [&](const Json& s) {
      return textOf(s, kKeyOf<&PathStep::state>) == "active" &&
             std::abs(numberOf(s, kKeyOf<&PathStep::until>) - t) <= 2 * kStepS;
    });
  }
};

// ---- what was wrong

Json trouble(const char* kind, double from) {
  return {{"kind", kind}, {"from_unix_s", from}, {"to_unix_s", nullptr}};
}

// Consecutive steps make one trouble.
void extend(Json& troubles, const char* kind, double end) {
  for (auto it = troubles.rbegin(); it != troubles.rend(); ++it) {
    if ((*it)["kind"] != kind || (*it)["to_unix_s"].get<double>() < end - 2.5 * kStepS) continue;
    (*it)["to_unix_s"] = end;
    std::rotate(it.base() - 1, it.base(), troubles.end());
    return;
  }
  troubles.push_back(trouble(kind, end - kStepS));
  troubles.back()["to_unix_s"] = end;
}

void count(Json& trouble, const char* key, uint64_t more) {
  trouble[key] = countOf(trouble, key) + more;
}

void findInSteps(Path& path) {
  for (const Json& s : path.steps) {
    double rtt = numberOf(s, kKeyOf<&PathStep::srtt>),
           queue = numberOf(s, kKeyOf<&PathStep::queueDelay>);
    if (rtt - queue > 0)
      path.leastRtt = path.leastRtt > 0 ? std::min(path.leastRtt, rtt - queue) : rtt - queue;
  }
  for (const Json& s : path.steps) {
    double end = numberOf(s, kKeyOf<&PathStep::until>);
    uint64_t sent = countOf(s, kKeyOf<&SendCounts::sentPackets>), lost = lostPackets(s);
    if (lost >= kFewLosses && static_cast<double>(lost) >= kBadLoss * static_cast<double>(sent)) {
      extend(path.troubles, "loss", end);
      count(path.troubles.back(), "packets", sent);
      count(path.troubles.back(), "lost", lost);
      count(path.troubles.back(), "recovered", recoveredIn(s));
    }
    double queue = numberOf(s, kKeyOf<&PathStep::queueDelay>);
    if (queue >= kBadQueueMs && queue > 2 * path.leastRtt) {
      extend(path.troubles, "queue", end);
      Json& last = path.troubles.back();
      last["most_queue_ms"] = std::max(last.value("most_queue_ms", 0.0), queue);
    }
  }
}

void endOutage(Json& troubles, double at) {
  for (Json& t : troubles)
    if ((t["kind"] == "silent" || t["kind"] == "gone") && t["to_unix_s"].is_null())
      t["to_unix_s"] = at;
}

void onEvent(Path& path, const std::string& kind, double at) {
  if (kind == "path_up") endOutage(path.troubles, at);
  if (kind != "path_silent" && kind != "path_gone") return;
  endOutage(path.troubles, at);
  path.troubles.push_back(trouble(kind == "path_silent" ? "silent" : "gone", at));
  path.troubles.back()["went_elsewhere"] = false;
}

// ---- the sums

Json pathJson(const Path& path) {
  uint64_t sent = 0, lost = 0, recovered = 0, out = 0, in = 0, blips = 0;
  for (const Json& s : path.steps) {
    blips += countOf(s, kKeyOf<&SendCounts::blips>);
    sent += countOf(s, kKeyOf<&SendCounts::sentPackets>);
    lost += lostPackets(s);
    recovered += recoveredIn(s);
    out += countOf(s, kKeyOf<&SendCounts::sentBytes>);
    in += countOf(s, kKeyOf<&ReceiveCounts::receivedBytes>);
  }
  Json troubles = path.troubles;
  std::stable_sort(troubles.begin(), troubles.end(), [](const Json& a, const Json& b) {
    return a["from_unix_s"].get<double>() < b["from_unix_s"].get<double>();
  });
  return {{"peer", path.peer},
          {"path", path.name},
          {"known_s", static_cast<double>(path.steps.size()) * kStepS},
          {"state", path.steps.empty() ? Json(nullptr) : path.steps.back().value("state", Json())},
          {"sent_packets", sent},
          {"lost_packets", lost},
          {"recovered_packets", recovered},
          {"blips", blips},
          {"sent_bytes", out},
          {"received_bytes", in},
          {"least_rtt_ms", path.leastRtt > 0 ? Json(path.leastRtt) : Json(nullptr)},
          {"troubles", std::move(troubles)}};
}

Json meanOf(double sum, uint64_t count) {
  return count > 0 ? Json(sum / static_cast<double>(count)) : Json(nullptr);
}

Json sumsOf(const Json& paths, const Json& peers) {
  std::map<std::string, uint64_t> sums;
  for (const char* name : {"paths_taken_out", "paths_came_back", "stalls_avoided"}) sums[name] = 0;
  auto addAll = [&](const Json& from, std::initializer_list<const char*> names) {
    for (const char* name : names) sums[name] += 0;
    for (const Json& each : from)
      for (const char* name : names) sums[name] += countOf(each, name);
  };
  addAll(paths, {"sent_packets", "lost_packets", "recovered_packets", "blips"});
  addAll(peers, {"decoded_packets", "retransmitted_packets", "undelivered_packets"});
  for (const Json& p : paths) {
    for (const Json& t : p["troubles"]) {
      if (t["kind"] != "silent" && t["kind"] != "gone") continue;
      ++sums["paths_taken_out"];
      sums["paths_came_back"] += !t["to_unix_s"].is_null();
      sums["stalls_avoided"] += flagOf(t, "stall_avoided");
    }
  }
  double later = 0;
  for (const Json& p : peers)
    later += numberOf(p, "retransmit_delay_ms", 0) *
             static_cast<double>(countOf(p, "retransmitted_packets"));
  Json out = sums;
  out["retransmit_delay_ms"] = meanOf(later, sums["retransmitted_packets"]);
  return out;
}

Json peerJson(const Json& answer, double since, double until) {
  uint64_t decoded = 0, again = 0, undelivered = 0;
  double later = 0;
  for (const Json& s : stepsOf(answer, since, until)) {
    decoded += countOf(s, kKeyOf<&PeerStep::restored>);
    again += countOf(s, kKeyOf<&OutboundCounts::retransmitted>);
    later += numberOf(s, kKeyOf<&OutboundCounts::retransmitDelay>, 0);
    undelivered += countOf(s, kKeyOf<&OutboundCounts::undelivered>);
  }
  return {{"peer", textOf(answer, "peer")},
          {"decoded_packets", decoded},
          {"retransmitted_packets", again},
          {"retransmit_delay_ms", meanOf(later, again)},
          {"undelivered_packets", undelivered}};
}

}  // namespace

Json explain(const PastAnswers& past, double since, double until) {
  std::vector<Path> paths;
  for (const Json& answer : past.paths) {
    Path& path = paths.emplace_back();
    path.peer = textOf(answer, "peer");
    path.name = textOf(answer, "path");
    path.steps = stepsOf(answer, since, until);
    findInSteps(path);
  }
  Json others = Json::array();
  for (const Json& event : listOf(past.index, "events")) {
    double at = numberOf(event, kKeyOf<&PastEvent::at>);
    std::string kind = textOf(event, kKeyOf<&PastEvent::kind>);
    double last = numberOf(event, kKeyOf<&PastEvent::last>);
    if (!(std::max(at, last) >= since) || at > until + kStepS) continue;
    auto isMeant = [&](const Path& p) {
      return p.peer == textOf(event, "peer") && p.name == textOf(event, "path");
    };
    auto found = std::find_if(paths.begin(), paths.end(), isMeant);
    bool isPaths = kind == "path_up" || kind == "path_silent" || kind == "path_gone";
    if (isPaths && found != paths.end()) onEvent(*found, kind, at);
    if (!isPaths) others.push_back(event);
  }
  for (Path& path : paths) {
    for (Json& t : path.troubles) {
      if (!t.contains("went_elsewhere")) continue;
      double at = t["from_unix_s"].get<double>();
      bool wentElsewhere =
          path.isBusyAt(at) && std::any_of(paths.begin(), paths.end(), [&](const Path& other) {
            return &other != &path && other.peer == path.peer && other.isThereAt(at);
          });
      t["went_elsewhere"] = wentElsewhere;
      t["stall_avoided"] = wentElsewhere && !t["to_unix_s"].is_null();
    }
  }
  Json out = {{"from_unix_s", since}, {"until_unix_s", until}};
  Json told = Json::array(), peers = Json::array();
  for (const Path& path : paths)
    if (!path.steps.empty() || !path.troubles.empty()) told.push_back(pathJson(path));
  for (const Json& peer : past.peers) peers.push_back(peerJson(peer, since, until));
  out["sums"] = sumsOf(told, peers);
  out["paths"] = std::move(told);
  out["peers"] = std::move(peers);
  out["events"] = std::move(others);
  return out;
}

namespace {

std::string plural(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string span(const Json& trouble) {
  double from = numberOf(trouble, "from_unix_s"), to = numberOf(trouble, "to_unix_s");
  if (std::isnan(to)) return "down since " + formatTimeOfDay(from);
  return formatTimeOfDay(from) + " to " + formatTimeOfDay(to);
}

std::string length(const Json& trouble) {
  double s = numberOf(trouble, "to_unix_s") - numberOf(trouble, "from_unix_s");
  return " for " + (s < 60 ? formatMilliseconds(std::max(1.0, s * 1000)) : formatAge(s));
}

// "430 of them repaired before the sender knew, the other 74 sent again or never delivered"
std::string lossCost(uint64_t lost, uint64_t recovered) {
  if (recovered == 0) return "all sent again or never delivered";
  if (recovered >= lost) return "all repaired before the sender knew";
  return std::to_string(recovered) + " of them repaired before the sender knew, the other " +
         std::to_string(lost - recovered) + " sent again or never delivered";
}

std::string troubleText(const Json& t) {
  std::string kind = textOf(t, "kind");
  if (kind == "loss") {
    uint64_t lost = countOf(t, "lost"), packets = countOf(t, "packets");
    return "lost " + formatShare(lost, packets) + " of " + plural(packets, "packet") + " (" +
           std::to_string(lost) + "): " + lossCost(lost, countOf(t, "recovered"));
  }
  if (kind == "queue")
    return "packets waited up to " + formatMilliseconds(numberOf(t, "most_queue_ms")) +
           " on the way: the line was full, or its radio slow";
  const bool isDown = t["to_unix_s"].is_null();
  std::string what =
      kind == "silent" ? "fell silent" : "lost its uplink (cable, radio or address gone)";
  if (!isDown) what += length(t);
  if (!flagOf(t, "went_elsewhere")) return what;
  return what + (isDown ? "; its packets go by the other paths"
                        : "; its packets went by the other paths: a stall avoided");
}

// Of a path without an outage in the time that is looked at, the last step tells: it may have been
// down all the time.
bool isDown(const Json& path) {
  bool hadOutage = false;
  for (const Json& t : listOf(path, "troubles")) {
    if (fieldOf(t, "to_unix_s").is_null()) return true;
    hadOutage |= textOf(t, "kind") == "silent" || textOf(t, "kind") == "gone";
  }
  const std::string state = textOf(path, "state");
  return !hadOutage && (state == "suspect" || state == "failed" || state == "closed");
}

std::string pathText(const Json& path) {
  std::string text = textOf(path, "peer") + " by " + textOf(path, "path") + ": ";
  const Json::array_t& troubles = listOf(path, "troubles");
  text += isDown(path)       ? "down"
          : troubles.empty() ? "good"
                             : "bad " + plural(troubles.size(), "time");
  uint64_t sent = countOf(path, "sent_packets"), lost = countOf(path, "lost_packets");
  text += "; " + formatBytes(numberOf(path, "sent_bytes")) + " out, " +
          formatBytes(numberOf(path, "received_bytes")) + " in, lost on the path " +
          formatShare(lost, sent);
  if (lost > 0)
    text += " (" + formatShare(countOf(path, "recovered_packets"), lost) +
            " of it repaired before the sender knew)";
  text += ", RTT " + formatMilliseconds(numberOf(path, "least_rtt_ms")) + " at best";
  if (uint64_t n = countOf(path, "blips"))
    text += ", " + plural(n, "blip") + " of less than 100 ms";
  text += "\n";
  for (const Json& t : troubles) text += "  " + span(t) + "  " + troubleText(t) + "\n";
  return text;
}

std::string sumsText(const Json& sums) {
  const uint64_t again = countOf(sums, "retransmitted_packets");
  std::string text = "Of all packets sent: " + std::to_string(countOf(sums, "lost_packets")) +
                     " lost on the path, " + std::to_string(countOf(sums, "recovered_packets")) +
                     " of them repaired before the sender knew; " + std::to_string(again) +
                     " sent again";
  if (again > 0)
    text += " (" + formatMilliseconds(numberOf(sums, "retransmit_delay_ms")) + " later)";
  text += ", " + std::to_string(countOf(sums, "undelivered_packets")) + " never delivered";
  if (uint64_t n = countOf(sums, "decoded_packets"))
    text += "; of what came in " + plural(n, "packet") + " given back by coding";
  if (uint64_t n = countOf(sums, "paths_taken_out"))
    text += "; a path taken out " + plural(n, "time") + ", back " +
            plural(countOf(sums, "paths_came_back"), "time") + ", " +
            plural(countOf(sums, "stalls_avoided"), "stall") + " avoided";
  return text + ".\n";
}

std::string eventText(const Json& event) {
  std::string peer = textOf(event, "peer");
  uint64_t count = countOf(event, "count");
  return "  " + formatTimeOfDay(numberOf(event, kKeyOf<&PastEvent::at>)) + "  " +
         (peer == "-" ? "" : "peer " + peer + ": ") + textOf(event, "text") +
         (count > 1 ? " (" + std::to_string(count) + " times, last " +
                          formatTimeOfDay(numberOf(event, kKeyOf<&PastEvent::last>)) + ")"
                    : "") +
         "\n";
}

}  // namespace

std::string explainText(const Json& explained) {
  double from = numberOf(explained, "from_unix_s"), until = numberOf(explained, "until_unix_s");
  std::string text = "The last " + formatAge(until - from) + ", from " + formatTimeOfDay(from) +
                     " to " + formatTimeOfDay(until) + ".\n\n";
  const Json::array_t& paths = listOf(explained, "paths");
  if (paths.empty())
    text += "Nothing is known of any path: no peer was up, or the daemon began just now.\n";
  for (const Json& path : paths) text += pathText(path);
  if (!paths.empty()) text += "\n" + sumsText(fieldOf(explained, "sums"));
  const Json::array_t& events = listOf(explained, "events");
  if (!events.empty()) text += "\nWhat else happened:\n";
  for (const Json& event : events) text += eventText(event);
  return text;
}

}  // namespace braid
