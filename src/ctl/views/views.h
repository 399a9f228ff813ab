#pragma once

// The daemon's answers as text for people. The functions accept any JSON: a member that is missing
// or of another type shows as "-".

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ctl/views/host_names.h"

namespace braid {

/// The name of a path: "wifi", or the peer's address and port where the peer tells no name.
std::string pathName(const nlohmann::json& subflow);
/// Packets lost on a path, by the counters of a subflow or of a step of the history. Those that
/// were only late are not among them.
uint64_t lostPackets(const nlohmann::json& counters);
/// The state of a path for people: "down for 15 s" of one that does not answer or lost its uplink,
/// else the daemon's word.
std::string pathState(const nlohmann::json& subflow);
/// What an operator asks first: peers, paths, uplinks; at most 100 columns wide.
std::string statusText(const nlohmann::json& answer);
/// The inside of the gateway as well, as wide as its figures are.
std::string verboseStatusText(const nlohmann::json& answer);
std::string peersText(const nlohmann::json& answer);
std::string pathsText(const nlohmann::json& answer);
std::string recoveryText(const nlohmann::json& answer);

/// Seconds without a byte after which a flow or stream counts as idle and is folded away.
inline constexpr double kIdleSeconds = 5;
/// The flows and streams of an answer to {"cmd":"flows"} as one list of rows with the same members.
nlohmann::json::array_t flowRows(const nlohmann::json& answer);
/// What identifies a row in later answers.
std::string flowKey(const nlohmann::json& row);
bool isIdle(const nlohmann::json& row);

/// The daemon's flows at one time.
struct FlowLook {
  double at = 0;          ///< seconds, of any clock
  nlohmann::json answer;  ///< to {"cmd":"flows"}; null: not asked for
};
/// Flows and streams by rate since the look before, with the names of hosts. Those that are idle
/// are counted, and listed only on demand.
std::string flowsText(const FlowLook& now, const FlowLook& last, const HostNames& names,
                      bool withIdle);

/// The daemon's answers about its history, as they came over the control socket.
struct PastAnswers {
  nlohmann::json index;               ///< answer to {"cmd":"history"}
  std::vector<nlohmann::json> paths;  ///< answer for each path
  std::vector<nlohmann::json> peers;  ///< answer for each peer
};

/// Summarizes the daemon's history: what went wrong on the paths, and what was done about it.
/// Covers the time from `since` to `until`, in seconds since 1970. Gives for each path its sums and
/// its "troubles": their kind (`loss`, `queue`, `silent` or `gone`), from when to when, what each
/// cost and what was done. Gives for all paths together: "sums", "peers" and other "events".
/// Accepts any JSON: a member that is missing or of another type counts as nothing.
nlohmann::json explain(const PastAnswers& past, double since, double until);

/// The result of explain() as sentences for people.
std::string explainText(const nlohmann::json& explained);

enum class TopView : uint8_t { kPaths, kPeers, kFlows };
constexpr TopView nextView(TopView view) {
  return view == TopView::kPaths   ? TopView::kPeers
         : view == TopView::kPeers ? TopView::kFlows
                                   : TopView::kPaths;
}

/// The daemon's answers at one time.
struct TopLook {
  /// Seconds since the daemon's start, by the daemon's clock: the time of the counters, however
  /// long the answer was under way.
  double at = 0;
  nlohmann::json status;  ///< answer to {"cmd":"status"}
  nlohmann::json flows;   ///< answer to {"cmd":"flows"}; null: not asked for
};

class TopScreen {
 public:
  /// Seconds over which losses are counted.
  static constexpr double kWindow = 10;

  explicit TopScreen(HostNames names = {}) : names_(std::move(names)) {}

  /// A look with an earlier time is the first one of a daemon that has started again.
  void add(TopLook look);
  /// At most `rows` lines of at most `columns` characters.
  std::vector<std::string> lines(TopView view, size_t rows, size_t columns) const;

 private:
  std::deque<TopLook> looks_;  ///< those of the window, oldest first
  HostNames names_;
};

}  // namespace braid
