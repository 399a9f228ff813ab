#pragma once

#include <spdlog/spdlog.h>

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/log/log.h"
#include "host/network.h"

namespace braid {

/// Does steps that belong together. When it is destroyed before commit(), it reverts the steps that
/// were done, the last one first.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    for (auto t = takeBacks_.rbegin(); t != takeBacks_.rend(); ++t) {
      try {
        (*t)();
      } catch (const std::exception& e) {
        spdlog::warn("{}", e.what());
      }
    }
  }

  void step(const std::function<void()>& doIt, std::function<void()> takeBack) {
    doIt();
    takeBacks_.push_back(std::move(takeBack));
  }
  void commit() { takeBacks_.clear(); }

 private:
  std::vector<std::function<void()>> takeBacks_;
};

/// Restores the gateway's changes to the host when another program removes them. A network manager
/// that restarts, for example, flushes addresses, routes and rules that it does not know.
class NetworkReconciler {
 public:
  /// Time to wait before restoring: the other program changes several things one after the other,
  /// and would remove again what was restored in between.
  static constexpr Duration kSettle = 100ms;
  /// Shortest time between two attempts, for a program that removes things again and again. While
  /// the host refuses, the time grows up to kLongestPause.
  static constexpr Duration kPause = 1s, kLongestPause = 64s;
  /// When something had to be restored in this many rounds, less than kContest apart from each
  /// other, another program wants it away: the time between two attempts then grows, too.
  static constexpr int kRounds = 3;
  static constexpr Duration kContest = 10s;

  /// `network` and `log` must outlive this.
  NetworkReconciler(HostNetwork& network, LogLimiter& log) : network_(network), log_(log) {}

  /// Something may be gone: check for it soon.
  void suspect(Time now);
  /// When to call onTimer().
  Time deadline() const { return deadline_; }
  void onTimer(Time now);

 private:
  Duration pauseAfterLoss(Time now);

  HostNetwork& network_;
  LogLimiter& log_;
  Time deadline_ = kNever;
  Time earliest_ = Time::min();
  Duration pause_ = kPause;
  int losses_ = 0;               ///< rounds that restored something, one soon after the other
  Time lastLoss_ = Time::min();  ///< the last of them
  Duration contest_ = kPause;    ///< the pause after it
};

}  // namespace braid
