#pragma once

#include <spdlog/spdlog.h>

#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace braid {

/// Does steps that belong together, and takes the done ones back, last first, when it ends before commit().
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

}  // namespace braid
