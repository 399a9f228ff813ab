#include "gateway/control/control_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "gateway/control/status_json.h"

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
    {"test-stop", ControlCommand::kTestStop},   {"invite", ControlCommand::kInvite}};

// What an invitation is asked for with. nullopt: malformed.
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

// What may stand beside "cmd".
using Member = std::variant<std::string ControlRequest::*, double ControlRequest::*,
                            uint64_t ControlRequest::*, bool ControlRequest::*>;
struct Argument {
  ControlCommand of;
  std::string_view name;
  Member member;
};
constexpr Argument kArguments[] = {{ControlCommand::kHistory, "peer", &ControlRequest::peer},
                                   {ControlCommand::kHistory, "path", &ControlRequest::path},
                                   {ControlCommand::kTestStart, "peer", &ControlRequest::peer},
                                   {ControlCommand::kTestStart, "path", &ControlRequest::path},
                                   {ControlCommand::kTestStart, "seconds", &ControlRequest::seconds},
                                   {ControlCommand::kTestStart, "bytes", &ControlRequest::bytes},
                                   {ControlCommand::kTestStart, "metered", &ControlRequest::metered}};

template <typename T>
bool isOf(const json& value) {
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, uint64_t>) return value.is_number_unsigned();
  return value.is_number();
}

// Gives what is wrong; empty: the argument is taken.
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

json startTest(const ControlRequest& request, ControlHandler& handler) {
  if (!(request.seconds > 0 && request.seconds <= toSeconds(MeasureRequest::kLongest)) ||
      request.bytes == 0 || request.bytes > MeasureRequest::kMostBytes) {
    return {{"error", "a test takes up to 60 seconds and 10 GiB, and more than nothing"}};
  }
  std::string problem = handler.startTest(
      request.peer, {request.path, fromSeconds(request.seconds), request.bytes, request.metered});
  return problem.empty() ? json::object() : json{{"error", problem}};
}

// Names may come from outside (interfaces); bytes that are no UTF-8 are replaced.
std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string controlError(std::string_view text) {
  return line({{"ok", false}, {"error", text}});
}

std::variant<ControlRequest, std::string> parseControlRequest(std::string_view text) {
  json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (line.is_discarded()) return "not a line of JSON";
  auto cmd = line.is_object() ? line.find("cmd") : line.end();
  if (!line.is_object() || cmd == line.end() || !cmd->is_string()) return "a request is {\"cmd\":\"NAME\"}";
  const auto& name = cmd->get_ref<const std::string&>();
  auto isMeant = [&](const auto& entry) { return entry.first == name; };
  const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands), isMeant);
  if (found == std::end(kCommands)) {
    std::string known;
    for (const auto& [word, command] : kCommands) known.append(known.empty() ? "" : ", ").append(word);
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

std::string answerControl(const ControlRequest& request, UniqueFd file, bool isOwner,
                          ControlHandler& handler) {
  json answer;
  switch (request.command) {
    case ControlCommand::kInvite: {
      if (!isOwner) return controlError("only root may invite: an invitation adds a peer");
      InviteResult made = handler.invite(request.invite);
      if (!made.problem.empty()) return controlError(made.problem);
      answer = {{"line", made.line}, {"note", made.note.empty() ? json(nullptr) : json(made.note)}};
      break;
    }
    case ControlCommand::kHistory: {
      const History& history = handler.history();
      const History::Peer* peer = request.peer.empty() ? nullptr : history.peer(request.peer);
      const History::Path* path = request.path.empty() ? nullptr : history.path(request.peer, request.path);
      if (!request.path.empty() && !path) return controlError("nothing is known of such a path");
      if (request.path.empty() && !request.peer.empty() && !peer)
        return controlError("nothing is known of such a peer");
      answer = path ? historyJson(*path) : peer ? historyJson(*peer) : historyJson(history);
      break;
    }
    case ControlCommand::kStatus:
      answer = statusJson(handler.gatewayStatus(), handler.tunnelStatus(0));
      break;
    case ControlCommand::kPaths:
      answer = pathsJson(handler.tunnelStatus(0));
      break;
    case ControlCommand::kFlows:
      answer = flowsJson(handler.tunnelStatus(kListedFlows));
      break;
    case ControlCommand::kPeers:
      answer = peersJson(handler.tunnelStatus(0));
      break;
    case ControlCommand::kRecovery:
      answer = recoveryJson(handler.gatewayStatus(), handler.tunnelStatus(0));
      break;
    case ControlCommand::kTraceOn:
      if (!file) return controlError("trace-on needs a file: the client passes its descriptor");
      if (std::string problem = handler.trace(std::move(file)); !problem.empty())
        return controlError(problem);
      answer = json::object();
      break;
    case ControlCommand::kTraceOff:
      handler.trace({});
      answer = json::object();
      break;
    case ControlCommand::kTestStart:
      answer = startTest(request, handler);
      if (answer.contains("error")) return controlError(answer["error"].get<std::string>());
      break;
    case ControlCommand::kTest: {
      auto [test, peer] = handler.testStatus();
      answer = testJson(test, peer);
      break;
    }
    case ControlCommand::kTestStop:
      handler.stopTest();
      answer = json::object();
      break;
    case ControlCommand::kVersion:
      answer = {{"version", handler.gatewayStatus().version}};
      break;
    case ControlCommand::kReload:
      if (std::string problem = handler.reload(); !problem.empty()) return controlError(problem);
      answer = json::object();
      break;
  }
  answer["ok"] = true;
  std::string text = line(answer);
  if (text.size() > ControlSession::kMaxAnswer) return controlError("the answer is too long");
  return text;
}

void ControlSession::onInput(std::string_view bytes, Time now) {
  input_ += bytes;
  answerNext(now);
}

void ControlSession::onEnd(Time now) {
  ended_ = true;
  answerNext(now);
}

void ControlSession::onWritten(size_t n, Time now) {
  written_ += n;
  if (written_ < answer_.size()) return;
  answer_ = {};
  written_ = 0;
  since_ = now;
  answerNext(now);
}

// Answers the first whole line, if there is one and no answer is on its way.
void ControlSession::answerNext(Time now) {
  while (answer_.empty() && !input_.empty()) {
    size_t end = input_.find('\n');
    if (end == std::string::npos && input_.size() <= kMaxLine && !ended_) return;
    std::string request = input_.substr(0, end);
    input_.erase(0, end == std::string::npos ? end : end + 1);
    if (request.size() > kMaxLine) {
      answer_ = controlError("a request has at most " + std::to_string(kMaxLine) + " bytes");
      input_.clear();
      ended_ = true;
    } else if (request.find_first_not_of(" \t\r") != std::string::npos) {
      auto parsed = parseControlRequest(request);
      auto* meant = std::get_if<ControlRequest>(&parsed);
      UniqueFd file = std::exchange(file_, UniqueFd());
      answer_ = meant ? answerControl(*meant, std::move(file), isOwner_, handler_)
                      : controlError(std::get<std::string>(parsed));
    }
    if (!answer_.empty()) since_ = now;
  }
}

}  // namespace braid
