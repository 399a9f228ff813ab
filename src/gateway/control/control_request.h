#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "gateway/control/invite_request.h"
#include "tunnel/session/measure_request.h"

namespace braid {

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
  kInvite
};
struct ControlRequest {
  ControlCommand command{};
  std::string peer = {}, path = {};  ///< kHistory, kTestStart
  // kTestStart
  double seconds = 5;
  uint64_t bytes = MeasureRequest{}.bytes;
  bool metered = false;
  InviteRequest invite = {};  ///< kInvite
};

/// A request line without its line end: the request, or what is wrong in plain words.
std::variant<ControlRequest, std::string> parseControlRequest(std::string_view line);

}  // namespace braid
