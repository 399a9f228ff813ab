#include "web/past_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ctl/views/explain.h"
#include "web/busiest.h"
#include "web/json_fields.h"

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
    for (const Json& p : itemsOf(index->value, "paths"))
      if (peer_.empty() || wordOf(p, "peer") == peer_) paths.push_back(p);
    keepBusiest(paths, PastView::kPaths,
                [](const Json& p) { return static_cast<double>(wholeOf(p, "bytes")); });
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
    out["step_s"] = memberOf(index_->value, "step_s");
    out["all_events"] = Json::array();
    for (const Json& event : itemsOf(index_->value, "events"))
      if (peer_.empty() || wordOf(event, "peer") == peer_) out["all_events"].push_back(event);
    out["stranger"] = memberOf(index_->value, "stranger");
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

}  // namespace braid
