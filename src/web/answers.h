#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <string>
#include <vector>

#include "base/time.h"
#include "web/daemon_link.h"

namespace braid {

/// What the daemon said, shared by all who look: however many browsers ask, the daemon is asked the same thing only as
/// often as an answer gets old, and few things at once.
class Answers {
 public:
  using Shared = std::shared_ptr<const DaemonAnswer>;
  using Done = std::function<void(const Shared&)>;
  using Clock = std::function<Time()>;
  static constexpr size_t kAtOnce = 2;  ///< questions that are on their way
  static constexpr size_t kKept = 300;  ///< answers; an older one gives way
  static constexpr Duration kForgotten = 2min;

  /// `daemon` must outlive this.
  Answers(DaemonLink& daemon, Clock clock) : daemon_(daemon), clock_(std::move(clock)) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// Calls back with an answer that is at most so old: at once, or when the daemon has answered. A failure is as good as
  /// an answer.
  void get(const nlohmann::json& request, Duration age, Done done);
  size_t kept() const { return entries_.size(); }

 private:
  struct Entry {
    Time at{};
    Shared answer;  ///< null: there was none yet
    std::vector<Done> waiting;
    bool isAsked = false;
  };

  void ask(const std::string& key);
  void onAnswer(const std::string& key, DaemonAnswer answer);
  void makeRoom();

  DaemonLink& daemon_;
  Clock clock_;
  std::map<std::string, Entry> entries_;  ///< by the request's text
  std::queue<std::string> queue_;         ///< requests that are not sent yet
  size_t onTheirWay_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace braid
