#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "web/answers.h"

namespace braid {

/// What the page shows of the last hour: the steps of the paths, and the summary that `braidctl
/// explain` gives.
class PastView {
 public:
  using Done = std::function<void(nlohmann::json)>;
  /// Largest age of the answers: the daemon ends a step every 10 s.
  static constexpr Duration kAge = 9s;
  static constexpr size_t kPaths = 32;  ///< most that are listed: those that carried most
  static constexpr double kSeconds = 3600;

  /// Asks the daemon and calls back once. `peer`: asks for this peer only; empty: for all peers.
  static void tell(Answers& answers, const std::string& peer, Done done);
};

}  // namespace braid
