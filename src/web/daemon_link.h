#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace braid {

/// What a daemon said.
struct DaemonAnswer {
  std::string text;      ///< one line of JSON
  nlohmann::json value;  ///< the same; null without an answer
  std::string problem;   ///< why there is no answer, or what the daemon refused, in plain words; empty: none
  double at = 0;         ///< when it came, in seconds since 1970
};

/// The daemon, as far as this process asks it something.
class DaemonLink {
 public:
  using Done = std::function<void(DaemonAnswer)>;
  virtual ~DaemonLink() = default;
  /// Sends one request, {"cmd":...}, and calls back once: later, or never when the link ends before.
  virtual void ask(const nlohmann::json& request, Done done) = 0;
};

}  // namespace braid
