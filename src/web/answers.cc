#include "web/answers.h"

#include <algorithm>
#include <utility>

namespace braid {

void Answers::get(const nlohmann::json& request, Duration age, Done done) {
  std::string key = request.dump();
  if (!entries_.contains(key)) makeRoom();
  Entry& entry = entries_[key];
  if (entry.answer && clock_() - entry.at <= age) {
    Shared answer = entry.answer;
    return done(answer);
  }
  entry.waiting.push_back(std::move(done));
  if (std::exchange(entry.isAsked, true)) return;
  if (onTheirWay_ < kAtOnce) return ask(key);
  queue_.push(key);
}

void Answers::ask(const std::string& key) {
  ++onTheirWay_;
  daemon_.ask(nlohmann::json::parse(key),
              [this, key, alive = std::weak_ptr<bool>(alive_)](DaemonAnswer answer) {
                if (!alive.expired()) onAnswer(key, std::move(answer));
              });
}

void Answers::onAnswer(const std::string& key, DaemonAnswer answer) {
  --onTheirWay_;
  Entry& entry = entries_[key];
  entry.at = clock_();
  entry.answer = std::make_shared<const DaemonAnswer>(std::move(answer));
  entry.isAsked = false;
  Shared shared = entry.answer;
  std::vector<Done> waiting = std::exchange(entry.waiting, {});
  if (!queue_.empty() && onTheirWay_ < kAtOnce) {
    std::string next = std::move(queue_.front());
    queue_.pop();
    ask(next);
  }
  for (Done& done : waiting) done(shared);
}

// Removes old entries, and then the oldest until there is room. Entries that somebody waits for
// stay.
void Answers::makeRoom() {
  Time now = clock_();
  std::erase_if(entries_,
                [&](const auto& e) { return !e.second.isAsked && now - e.second.at > kForgotten; });
  while (entries_.size() >= kKept) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.isAsked) continue;
      if (oldest == entries_.end() || it->second.at < oldest->second.at) oldest = it;
    }
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
  }
}

}  // namespace braid
