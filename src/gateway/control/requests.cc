#include "gateway/control/requests.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, ControlCommand> kCommands[] = {
    {"status", ControlCommand::kStatus},        {"paths", ControlCommand::kPaths},
    {"flows", ControlCommand::kFlows},          {"peers", ControlCommand::kPeers},
    {"recovery", ControlCommand::kRecovery},    {"reload", ControlCommand::kReload},
    {"trace-on", ControlCommand::kTraceOn},     {"trace-off", ControlCommand::kTraceOff},
    {"version", ControlCommand::kVersion},      {"history", ControlCommand::kHistory},
    {"test-start", ControlCommand::kTestStart}, {"test", ControlCommand::kTest},
    {"test-stop", ControlCommand::kTestStop},   {"invite", ControlCommand::kInvite},
    {"drain", ControlCommand::kDrain}};

// Reads the arguments of an invitation. nullopt: malformed.
std::optional<InviteRequest> inviteOf(const json& request) {
  InviteRequest out;
  auto texts = [](const json& list, std::vector<std::string>& to) {
    if (!list.is_array() || list.size() > 64) return false;
    for (const json& each : list) {
      if (!each.is_string()) return false;
      to.push_back(each.get<std::string>());
    }
    return true;
  };
  for (const auto& [key, value] : request.items()) {
    bool good = key == "cmd";
    if (key == "name" && value.is_string()) good = (out.name = value.get<std::string>(), true);
    if (key == "addresses") good = texts(value, out.addresses);
    if (key == "networks") good = texts(value, out.networks);
    if (key == "seconds" && value.is_number_unsigned()) {
      uint64_t seconds = value.get<uint64_t>();
      good = seconds <= static_cast<uint64_t>(InviteRequest::kLongest / 1s);
      if (good) out.lifetime = std::chrono::seconds(seconds);
    }
    if (!good) return std::nullopt;
  }
  return out;
}

// The members of a request that may stand beside "cmd".
using Member = std::variant<std::string ControlRequest::*, double ControlRequest::*,
                            uint64_t ControlRequest::*, bool ControlRequest::*>;
struct Argument {
  ControlCommand of;
  std::string_view name;
  Member member;
};
constexpr Argument kArguments[] = {
    {ControlCommand::kHistory, "peer", &ControlRequest::peer},
    {ControlCommand::kHistory, "path", &ControlRequest::path},
    {ControlCommand::kTestStart, "peer", &ControlRequest::peer},
    {ControlCommand::kTestStart, "path", &ControlRequest::path},
    {ControlCommand::kTestStart, "seconds", &ControlRequest::seconds},
    {ControlCommand::kTestStart, "bytes", &ControlRequest::bytes},
    {ControlCommand::kTestStart, "metered", &ControlRequest::metered},
    {ControlCommand::kDrain, "seconds", &ControlRequest::seconds}};

template <typename T>
bool isOf(const json& value) {
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, uint64_t>) return value.is_number_unsigned();
  return value.is_number();
}

// Reads one argument. Returns what is wrong; empty: nothing.
std::string take(const std::string& name, const json& value, ControlRequest& request) {
  for (const Argument& a : kArguments) {
    if (a.name != name || a.of != request.command) continue;
    bool taken = std::visit(
        [&]<typename T>(T ControlRequest::*member) {
          if (isOf<T>(value)) value.get_to(request.*member);
          return isOf<T>(value);
        },
        a.member);
    return taken ? "" : "'" + name + "' has a value of the wrong type";
  }
  return "a request is {\"cmd\":\"NAME\"}; the command has no argument '" + name + "'";
}

}  // namespace

std::variant<ControlRequest, std::string> parseControlRequest(std::string_view text) {
  json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (line.is_discarded()) return "not a line of JSON";
  auto cmd = line.is_object() ? line.find("cmd") : line.end();
  if (!line.is_object() || cmd == line.end() || !cmd->is_string())
    return "a request is {\"cmd\":\"NAME\"}";
  const auto& name = cmd->get_ref<const std::string&>();
  auto isMeant = [&](const auto& entry) { return entry.first == name; };
  const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands), isMeant);
  if (found == std::end(kCommands)) {
    std::string known;
    for (const auto& [word, command] : kCommands)
      known.append(known.empty() ? "" : ", ").append(word);
    return "unknown command; known: " + known;
  }
  ControlRequest request{.command = found->second};
  if (request.command == ControlCommand::kInvite) {
    std::optional<InviteRequest> invite = inviteOf(line);
    if (!invite) return "invite takes name, addresses, networks, seconds (60 to 2592000)";
    request.invite = std::move(*invite);
    return request;
  }
  for (const auto& [key, value] : line.items()) {
    if (key == "cmd") continue;
    if (std::string problem = take(key, value, request); !problem.empty()) return problem;
  }
  return request;
}

}  // namespace braid
