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

namespace braid {

/// A daemon's answer.
struct DaemonAnswer {
  std::string text;      ///< one line of JSON
  nlohmann::json value;  ///< `text` parsed; null without an answer
  std::string
      problem;  ///< why there is no answer, or what the daemon refused, in plain words; empty: none
  double at = 0;  ///< when it came, in seconds since 1970
};

/// The connection to the daemon.
class DaemonLink {
 public:
  using Done = std::function<void(DaemonAnswer)>;
  virtual ~DaemonLink() = default;
  /// Sends one request, {"cmd":...}, and calls back once: later, or never when the link is
  /// destroyed before.
  virtual void ask(const nlohmann::json& request, Done done) = 0;
};

/// The daemon's answers, shared by all browsers. However many browsers ask, the same request is
/// sent to the daemon only when its answer is too old, and at most kAtOnce requests are sent at
/// once.
class Answers {
 public:
  using Shared = std::shared_ptr<const DaemonAnswer>;
  using Done = std::function<void(const Shared&)>;
  using Clock = std::function<Time()>;
  static constexpr size_t kAtOnce = 2;  ///< requests being answered
  static constexpr size_t kKept = 300;  ///< answers kept; then older ones are dropped
  static constexpr Duration kForgotten = 2min;

  /// `daemon` must outlive this.
  Answers(DaemonLink& daemon, Clock clock) : daemon_(daemon), clock_(std::move(clock)) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// Calls back with an answer that is at most `age` old: at once, or when the daemon has answered.
  /// A failure counts as an answer.
  void get(const nlohmann::json& request, Duration age, Done done);
  size_t kept() const { return entries_.size(); }

 private:
  struct Entry {
    Time at{};
    Shared answer;  ///< null: no answer yet
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
