#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ctl/views/views.h"
#include "tunnel/api/status.h"
#include "web/views.h"

namespace braid {
namespace {

using Json = nlohmann::json;

/// One call of PastView::tell(): collects the answers as they arrive.
class Telling : public std::enable_shared_from_this<Telling> {
 public:
  Telling(Answers& answers, std::string peer, PastView::Done done)
      : answers_(answers), peer_(std::move(peer)), done_(std::move(done)) {}

  void start() {
    answers_.get(
        {{"cmd", "history"}}, PastView::kAge,
        [self = shared_from_this()](const Answers::Shared& index) { self->onIndex(index); });
  }

 private:
  void onIndex(const Answers::Shared& index) {
    index_ = index;
    std::vector<Json> questions;
    std::vector<std::string> peers;
    Json::array_t paths;
    for (const Json& p : listOf(index->value, "paths"))
      if (peer_.empty() || wordOf(p, "peer") == peer_) paths.push_back(p);
    keepBusiest(paths, PastView::kPaths,
                [](const Json& p) { return static_cast<double>(countOf(p, "bytes")); });
    for (const Json& p : paths) {
      const std::string peer = wordOf(p, "peer");
      questions.push_back({{"cmd", "history"}, {"peer", peer}, {"path", wordOf(p, "path")}});
      if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
    }
    paths_.resize(questions.size());
    peers_.resize(peers.size());
    left_ = paths_.size() + peers_.size();
    if (left_ == 0) return finish();
    for (size_t i = 0; i < questions.size(); ++i) ask(questions[i], paths_[i]);
    for (size_t i = 0; i < peers.size(); ++i)
      ask({{"cmd", "history"}, {"peer", peers[i]}}, peers_[i]);
  }

  void ask(const Json& question, Answers::Shared& place) {
    answers_.get(question, PastView::kAge,
                 [self = shared_from_this(), &place](const Answers::Shared& answer) {
                   place = answer;
                   if (--self->left_ == 0) self->finish();
                 });
  }

  // A path or peer that the daemon has forgotten meanwhile has no steps and is left out.
  void finish() {
    if (!index_->problem.empty()) return done_({{"problem", index_->problem}});
    PastAnswers past{.index = index_->value, .paths = {}, .peers = {}};
    for (const Answers::Shared& p : paths_)
      if (p->problem.empty()) past.paths.push_back(p->value);
    for (const Answers::Shared& p : peers_)
      if (p->problem.empty()) past.peers.push_back(p->value);
    Json out = explain(past, index_->at - PastView::kSeconds, index_->at);
    out["problem"] = nullptr;
    out["step_s"] = fieldOf(index_->value, "step_s");
    out["all_events"] = Json::array();
    for (const Json& event : listOf(index_->value, "events"))
      if (peer_.empty() || wordOf(event, "peer") == peer_) out["all_events"].push_back(event);
    out["stranger"] = fieldOf(index_->value, "stranger");
    out["steps"] = std::move(past.paths);
    done_(std::move(out));
  }

  Answers& answers_;
  std::string peer_;
  PastView::Done done_;
  Answers::Shared index_;
  std::vector<Answers::Shared> paths_, peers_;
  size_t left_ = 0;
};

}  // namespace

void PastView::tell(Answers& answers, const std::string& peer, Done done) {
  std::make_shared<Telling>(answers, peer, std::move(done))->start();
}

namespace {

// In samples. After a longer gap, the counts cannot be assigned to one step.
constexpr double kGap = 3;
constexpr double kForgotten = DayStore::kStep * static_cast<double>(DayStore::kSteps);

// Orders the states of paths, from the best to the worst.
int badness(const std::string& state) {
  constexpr const char* kStates[] = {"", "active", "validating", "suspect", "failed", "closed"};
  return static_cast<int>(std::find(std::begin(kStates), std::end(kStates), state) -
                          std::begin(kStates));
}

}  // namespace

void DayStore::add(const DaemonAnswer& status) {
  if (!status.problem.empty()) return;
  for (const Json& peer : listOf(status.value, "peers")) look(peer, status.at);
}

// Adds up the subflows of each path. The state of a path is that of its best subflow.
void DayStore::look(const Json& peer, double at) {
  struct Now {
    Total total;
    double rtt = 0, queue = 0;
    std::string state;
  };
  std::map<std::string, Now> all;
  for (const Json& s : listOf(peer, "subflows")) {
    Now& now = all[wordOf(s, kKeyOf<&SubflowStatus::path>)];
    now.total.out += countOf(s, kKeyOf<&SendCounts::sentBytes>);
    now.total.in += countOf(s, kKeyOf<&ReceiveCounts::receivedBytes>);
    now.total.sent += countOf(s, kKeyOf<&SendCounts::sentPackets>);
    now.total.lost += countOf(s, kKeyOf<&SendCounts::lostPackets>);
    now.total.spurious += countOf(s, kKeyOf<&SendCounts::spuriousLosses>);
    now.total.recovered += countOf(s, kKeyOf<&ProtectionCounts::recovered>);
    std::string state = wordOf(s, kKeyOf<&SubflowStatus::state>);
    if (!now.state.empty() && badness(now.state) <= badness(state)) continue;
    now.state = state;
    now.rtt = numberOf(s, kKeyOf<&SubflowStatus::srtt>, 0);
    now.queue = numberOf(s, kKeyOf<&SubflowStatus::queueDelay>, 0);
  }
  for (const auto& [name, now] : all) {
    Path* path = pathOf(wordOf(peer, kKeyOf<&PeerStatus::name>), name, at);
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
  step.recovered += std::min(lost, now.recovered - before.recovered);
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
      rows.push_back({static_cast<int64_t>(s.until), s.seconds, s.out, s.in, s.sent, s.lost,
                      s.recovered, s.rtt, s.queue, s.state});
    }
    paths.push_back({{"peer", path->peer}, {"path", path->name}, {"steps", std::move(rows)}});
  }
  return {{"step_s", kStep},
          {"columns",
           {"until_unix_s", "seconds", "sent_bytes", "received_bytes", "sent_packets",
            "lost_packets", "recovered_packets", "srtt_ms", "queue_delay_ms", "state"}},
          {"paths", std::move(paths)}};
}

}  // namespace braid
