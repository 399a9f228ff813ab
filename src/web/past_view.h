#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "web/answers.h"

namespace braid {

/// What the page shows of the last hour: the steps of paths, and what `braidctl explain` makes of them.
class PastView {
 public:
  using Done = std::function<void(nlohmann::json)>;
  static constexpr Duration kAge = 9s;  ///< of the answers: the daemon ends a step every 10 s
  static constexpr size_t kPaths = 32;  ///< that are told: those that carried most
  static constexpr double kSeconds = 3600;

  /// Asks the daemon and calls back once. `peer`: whose past; empty: of all.
  static void tell(Answers& answers, const std::string& peer, Done done);
};

}  // namespace braid
