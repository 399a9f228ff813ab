#pragma once

// Summarizes the history that the daemon keeps (gateway/control/history.h): what went wrong on the
// paths, and what was done about it.

#include <nlohmann/json.hpp>
#include <vector>

namespace braid {

/// The daemon's answers about its history, as they came over the control socket.
struct PastAnswers {
  nlohmann::json index;               ///< answer to {"cmd":"history"}
  std::vector<nlohmann::json> paths;  ///< answer for each path
  std::vector<nlohmann::json> peers;  ///< answer for each peer
};

/// Covers the time from `since` to `until`, in seconds since 1970. Gives for each path its sums and
/// its "troubles": their kind (`loss`, `queue`, `silent` or `gone`), from when to when, what each
/// cost and what was done. Gives for all paths together: "sums", "peers" and other "events".
/// Accepts any JSON: a member that is missing or of another type counts as nothing.
nlohmann::json explain(const PastAnswers& past, double since, double until);

/// The result of explain() as sentences for people.
std::string explainText(const nlohmann::json& explained);

}  // namespace braid
