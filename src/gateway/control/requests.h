#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "tunnel/session/session_options.h"

namespace braid {

/// What `braidctl invite` asks for.
struct InviteRequest {
  static constexpr Duration kShortest = 1min, kLongest = 30 * 24h;

  std::string name;  ///< of the new peer
  std::vector<std::string>
      addresses;  ///< HOST:PORT of this gateway; empty: those that it knows itself
  std::vector<std::string>
      networks;  ///< networks that the peer reaches through this gateway; empty: `device.networks`
  Duration lifetime = 24h;
};

/// The result of an InviteRequest.
struct InviteResult {
  std::string problem;  ///< empty: the invitation was created
  std::string line;     ///< the invitation line, which holds a secret
  std::string note;     ///< what is doubtful about the invitation; empty: nothing
};

enum class ControlCommand : uint8_t {
  kStatus,
  kPaths,
  kFlows,
  kPeers,
  kRecovery,
  kReload,
  kTraceOn,
  kTraceOff,
  kVersion,
  kHistory,
  kTestStart,
  kTest,
  kTestStop,
  kInvite,
  kDrain
};
struct ControlRequest {
  ControlCommand command{};
  std::string peer = {}, path = {};  ///< kHistory, kTestStart
  double seconds = 5;                ///< kTestStart, kDrain
  // kTestStart
  uint64_t bytes = MeasureRequest{}.bytes;
  bool metered = false;
  InviteRequest invite = {};  ///< kInvite
};

/// Parses a request line without its line end. Returns the request, or what is wrong in plain
/// words.
std::variant<ControlRequest, std::string> parseControlRequest(std::string_view line);

}  // namespace braid
