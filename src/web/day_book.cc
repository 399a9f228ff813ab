#include "web/day_book.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tunnel/api/status.h"
#include "web/busiest.h"
#include "web/json_fields.h"

namespace braid {
namespace {

using Json = nlohmann::json;

// In samples. After a longer gap, the counts cannot be assigned to one step.
constexpr double kGap = 3;
constexpr double kForgotten = DayStore::kStep * static_cast<double>(DayStore::kSteps);

double millisecondsOf(const Json& path, const char* key) {
  const Json& value = memberOf(path, key);
  return value.is_number() ? value.get<double>() : 0;
}

// Orders the states of paths, from the best to the worst.
int badness(const std::string& state) {
  constexpr const char* kStates[] = {"", "active", "validating", "suspect", "failed", "closed"};
  return static_cast<int>(std::find(std::begin(kStates), std::end(kStates), state) -
                          std::begin(kStates));
}

}  // namespace

void DayStore::add(const DaemonAnswer& status) {
  if (!status.problem.empty()) return;
  for (const Json& peer : itemsOf(status.value, "peers")) look(peer, status.at);
}

// Adds up the subflows of each path. The state of a path is that of its best subflow.
void DayStore::look(const Json& peer, double at) {
  struct Now {
    Total total;
    double rtt = 0, queue = 0;
    std::string state;
  };
  std::map<std::string, Now> all;
  for (const Json& s : itemsOf(peer, "subflows")) {
    std::string name = wordOf(s, infoOf<&SubflowStatus::uplink>().name);
    if (name.empty()) name = wordOf(s, infoOf<&SubflowStatus::remote>().name);
    Now& now = all[name];
    now.total.out += wholeOf(s, infoOf<&SendCounts::sentBytes>().name);
    now.total.in += wholeOf(s, infoOf<&ReceiveCounts::receivedBytes>().name);
    now.total.sent += wholeOf(s, infoOf<&SendCounts::sentPackets>().name);
    now.total.lost += wholeOf(s, infoOf<&SendCounts::lostPackets>().name);
    now.total.spurious += wholeOf(s, infoOf<&SendCounts::spuriousLosses>().name);
    now.total.recovered += wholeOf(s, infoOf<&ProtectionCounts::recovered>().name);
    std::string state = wordOf(s, infoOf<&SubflowStatus::state>().name);
    if (!now.state.empty() && badness(now.state) <= badness(state)) continue;
    now.state = state;
    now.rtt = millisecondsOf(s, infoOf<&SubflowStatus::srtt>().name);
    now.queue = millisecondsOf(s, infoOf<&SubflowStatus::queueDelay>().name);
  }
  for (const auto& [name, now] : all) {
    Path* path = pathOf(wordOf(peer, infoOf<&PeerStatus::name>().name), name, at);
    if (!path) continue;
    count(*path, now.total, at);
    path->step.rtt = std::max(path->step.rtt, now.rtt);
    path->step.queue = std::max(path->step.queue, now.queue);
    if (badness(now.state) > badness(path->step.state)) path->step.state = now.state;
    if (path->step.seconds < kStep) continue;
    path->step.until = at;
    if (path->steps.size() == kSteps) path->steps.popFront();
    path->steps.pushBack(std::exchange(path->step, {}));
  }
}

void DayStore::count(Path& path, const Total& now, double at) {
  double passed = at - std::exchange(path.seen, at);
  Total before = std::exchange(path.total, now);
  if (passed > kGap * toSeconds(kLook)) {  // this is also the case for a path that was never seen
    path.step = {};
    return;
  }
  bool restarted = now.out < before.out || now.in < before.in || now.sent < before.sent ||
                   now.lost < before.lost || now.spurious < before.spurious ||
                   now.recovered < before.recovered;
  if (restarted) before = {};
  Step& step = path.step;
  step.seconds += passed;
  step.out += now.out - before.out;
  step.in += now.in - before.in;
  step.sent += now.sent - before.sent;
  uint64_t lost = now.lost - before.lost;
  lost -= std::min(lost, now.spurious - before.spurious);
  step.lost += lost;
  step.left += lost - std::min(lost, now.recovered - before.recovered);
}

DayStore::Path* DayStore::pathOf(const std::string& peer, const std::string& name, double at) {
  for (Path& path : paths_)
    if (path.peer == peer && path.name == name) return &path;
  std::erase_if(paths_, [&](const Path& path) { return path.seen < at - kForgotten; });
  if (paths_.size() >= kMostPaths) return nullptr;
  Path& fresh = paths_.emplace_back();
  fresh.peer = peer;
  fresh.name = name;
  return &fresh;
}

uint64_t DayStore::Path::bytes() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) sum += steps[i].out + steps[i].in;
  return sum;
}

Json DayStore::tell(const std::string& peer) const {
  std::vector<const Path*> told;
  for (const Path& path : paths_)
    if (peer.empty() || path.peer == peer) told.push_back(&path);
  keepBusiest(told, kTold, [](const Path* path) { return static_cast<double>(path->bytes()); });
  Json::array_t paths;
  for (const Path* path : told) {
    Json::array_t rows;
    for (size_t i = 0; i < path->steps.size(); ++i) {
      const Step& s = path->steps[i];
      rows.push_back({static_cast<int64_t>(s.until), s.seconds, s.out, s.in, s.sent, s.lost, s.left,
                      s.rtt, s.queue, s.state});
    }
    paths.push_back({{"peer", path->peer}, {"path", path->name}, {"steps", std::move(rows)}});
  }
  return {{"step_s", kStep},
          {"columns",
           {"until_unix_s", "seconds", "sent_bytes", "received_bytes", "sent_packets",
            "lost_packets", "left_packets", "srtt_ms", "queue_delay_ms", "state"}},
          {"paths", std::move(paths)}};
}

}  // namespace braid
