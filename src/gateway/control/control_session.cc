#include "gateway/control/control_session.h"

#include <nlohmann/json.hpp>

#include "gateway/control/status_json.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, ControlCommand> kCommands[] = {
    {"status", ControlCommand::kStatus},     {"paths", ControlCommand::kPaths},
    {"flows", ControlCommand::kFlows},       {"peers", ControlCommand::kPeers},
    {"recovery", ControlCommand::kRecovery}, {"reload", ControlCommand::kReload},
    {"trace-on", ControlCommand::kTraceOn},  {"trace-off", ControlCommand::kTraceOff},
    {"version", ControlCommand::kVersion}};

// Names may come from outside (interfaces); bytes that are no UTF-8 are replaced.
std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string controlError(std::string_view text) {
  return line({{"ok", false}, {"error", text}});
}

std::variant<ControlCommand, std::string> parseControlRequest(std::string_view text) {
  json request = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (request.is_discarded()) return "not a line of JSON";
  auto cmd = request.is_object() ? request.find("cmd") : request.end();
  if (!request.is_object() || request.size() != 1 || cmd == request.end() || !cmd->is_string()) {
    return "a request is {\"cmd\":\"NAME\"}";
  }
  const auto& name = cmd->get_ref<const std::string&>();
  std::string known;
  for (const auto& [word, command] : kCommands) {
    if (word == name) return command;
    known.append(known.empty() ? "" : ", ").append(word);
  }
  return "unknown command; known: " + known;
}

std::string answerControl(ControlCommand command, UniqueFd file, ControlHandler& handler) {
  json answer;
  switch (command) {
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
      auto* command = std::get_if<ControlCommand>(&parsed);
      UniqueFd file = std::exchange(file_, UniqueFd());
      answer_ = command ? answerControl(*command, std::move(file), handler_)
                        : controlError(std::get<std::string>(parsed));
    }
    if (!answer_.empty()) since_ = now;
  }
}

}  // namespace braid
