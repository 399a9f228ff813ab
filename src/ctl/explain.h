#pragma once

// The past of a gateway, as the daemon keeps it (gateway/control/history.h), boiled down to what was bad and what was done.

#include <nlohmann/json.hpp>
#include <vector>

namespace braid {

/// What the daemon said of the past, each as it came over the control socket.
struct PastAnswers {
  nlohmann::json index;               ///< of {"cmd":"history"}
  std::vector<nlohmann::json> paths;  ///< of each path
  std::vector<nlohmann::json> peers;  ///< of each peer
};

/// From `since` to `until`, in seconds since 1970, on each path: its sums, its "troubles" (kind `loss`, `queue`,
/// `silent` or `gone`, from when to when, what each cost and what was done), and of all: "sums", "peers" and other
/// "events". Takes any JSON: what is missing or of another type counts as nothing.
nlohmann::json explain(const PastAnswers& past, double since, double until);

/// As sentences for people.
std::string explainText(const nlohmann::json& explained);

}  // namespace braid
