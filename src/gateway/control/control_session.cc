#include "gateway/control/control_session.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "gateway/control/requests.h"

namespace braid {

namespace {

using nlohmann::json;

constexpr size_t kPiece = 64 << 10;  // bytes; a piece is sent by few writes
constexpr Duration kLongestDrain = 600s;

// The time of a request. nullopt: it is longer than `most`, or shorter than the clock can tell.
std::optional<Duration> timeOf(const ControlRequest& request, Duration most) {
  if (!(request.seconds > 0 && request.seconds <= toSeconds(most))) return std::nullopt;
  const Duration time = fromSeconds(request.seconds);
  return time > Duration::zero() ? std::optional(time) : std::nullopt;
}

// Returns what is wrong; empty: the test runs.
std::string startTest(const ControlRequest& request, ControlHandler& handler) {
  const std::optional<Duration> time = timeOf(request, MeasureRequest::kLongest);
  if (!time || request.bytes == 0 || request.bytes > MeasureRequest::kMostBytes)
    return "a test takes up to 60 seconds and 10 GiB, and more than nothing";
  return handler.startTest(request.peer, {request.path, *time, request.bytes, request.metered});
}

json orNull(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

}  // namespace

std::string controlError(std::string_view text) {
  return jsonText({{"ok", false}, {"error", text}}) + "\n";
}

void ControlAnswer::work() {
  if (!std::exchange(begun_, true)) return begin();
  if (view_) return workOnPeers();
  std::string text;
  object_->write(text, kRowsAtOnce);
  put(std::move(text));
  if (object_->done()) finish("\n");
}

// Starts an answer. The figures of many peers take long, so their rows are made in the next turns.
void ControlAnswer::begin() {
  switch (request_.command) {
    case ControlCommand::kStatus:
      return beginPeers(PeerView::kStatus);
    case ControlCommand::kPaths:
      return beginPeers(PeerView::kPaths);
    case ControlCommand::kFlows:
      return beginPeers(PeerView::kFlows);
    case ControlCommand::kPeers:
      return beginPeers(PeerView::kPeers);
    case ControlCommand::kRecovery:
      return beginPeers(PeerView::kRecovery);
    case ControlCommand::kHistory:
      return beginHistory();
    default:
      return doOrder();
  }
}

// Carries out a command whose answer is short, and makes the whole answer.
void ControlAnswer::doOrder() {
  json answer = json::object();
  std::string problem;
  switch (request_.command) {
    case ControlCommand::kInvite: {
      if (!isOwner_) return refuse("only root may invite: an invitation adds a peer");
      InviteResult made = handler_.invite(request_.invite);
      problem = made.problem;
      answer = {{"line", made.line}, {"note", orNull(made.note)}};
      break;
    }
    case ControlCommand::kTraceOn:
      problem = file_ ? handler_.trace(std::move(file_))
                      : "trace-on needs a file: the client passes its descriptor";
      break;
    case ControlCommand::kTraceOff:
      handler_.trace({});
      break;
    case ControlCommand::kTestStart:
      problem = startTest(request_, handler_);
      break;
    case ControlCommand::kTest: {
      auto [test, peer] = handler_.testStatus();
      answer = testJson(test, peer);
      break;
    }
    case ControlCommand::kTestStop:
      handler_.stopTest();
      break;
    case ControlCommand::kDrain:
      if (std::optional<Duration> time = timeOf(request_, kLongestDrain)) {
        answer = {{"open", handler_.drain(*time)}};
      } else {
        problem = "a drain takes up to 600 seconds, and more than nothing";
      }
      break;
    case ControlCommand::kVersion:
      answer = {{"version", handler_.gatewayStatus().version}};
      break;
    case ControlCommand::kReload:
      problem = handler_.reload();
      break;
    default:
      break;  // begin() handles the other commands
  }
  if (!problem.empty()) return refuse(problem);
  answer["ok"] = true;
  put(jsonText(answer));
  finish("\n");
}

void ControlAnswer::beginHistory() {
  const History& history = handler_.history();
  RowObject object;
  if (!request_.path.empty()) {
    const History::Path* path = history.path(request_.peer, request_.path);
    if (!path) return refuse("nothing is known of such a path");
    object = historyObject(*path);
  } else if (!request_.peer.empty()) {
    const History::Peer* peer = history.peer(request_.peer);
    if (!peer) return refuse("nothing is known of such a peer");
    object = historyObject(*peer);
  } else {
    object = historyObject(history);
  }
  object.head["ok"] = true;
  object_.emplace(std::move(object));
}

void ControlAnswer::beginPeers(PeerView view) {
  view_ = view;
  GatewayStatus gateway;
  TunnelStatus tunnel;
  if (view == PeerView::kStatus || view == PeerView::kRecovery) gateway = handler_.gatewayStatus();
  if (view == PeerView::kStatus) tunnel = handler_.tunnelStatus();
  json beside = besidePeers(view, gateway, tunnel);
  beside["ok"] = true;
  std::string text = jsonText(beside);
  text.back() = ',';
  put(text + "\"peers\":[");
  recovery_ = gateway.recovery;
  peers_.reset();
}

// False: the next peer cannot be begun, because the answer was started again.
bool ControlAnswer::beginPeer() {
  size_t flows = *view_ == PeerView::kFlows ? flowShare(kListedFlows, peers_->size()) : 0;
  std::optional<PeerStatus> peer = handler_.peerStatus(place_, flows);
  if (!peer || peer->name != (*peers_)[place_]) {  // the configuration was changed meanwhile
    pieces_.clear();
    bytes_ = place_ = 0;
    begin();
    return false;
  }
  if (place_++ > 0) put(",");
  object_.emplace(peerObject(*view_, std::move(*peer), recovery_));
  return true;
}

void ControlAnswer::workOnPeers() {
  if (!peers_) {
    peers_ = handler_.peers();
    return;
  }
  for (size_t left = kRowsAtOnce; left > 0 && !done_;) {
    if (!object_ && place_ == peers_->size()) return finish("]}\n");
    if (!object_ && !beginPeer()) return;
    std::string text;
    left -= object_->write(text, left);
    put(std::move(text));
    if (object_->done()) object_.reset();
  }
}

void ControlAnswer::refuse(std::string_view why) {
  pieces_ = {controlError(why)};
  done_ = true;
}

void ControlAnswer::finish(std::string_view end) {
  put(std::string(end));
  done_ = true;
}

void ControlAnswer::put(std::string text) {
  bytes_ += text.size();
  if (bytes_ > kMaxAnswer) {
    refuse("the answer is too long");
  } else if (pieces_.empty() || pieces_.back().size() >= kPiece) {
    pieces_.push_back(std::move(text));
  } else {
    pieces_.back() += text;
  }
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
  if (written_ < answer_.front().size()) return;
  answer_.pop_front();
  written_ = 0;
  if (!answer_.empty()) return;
  since_ = now;
  answerNext(now);
}

void ControlSession::onTurn(Time now) {
  making_->work();
  if (!making_->done()) return;
  answer_ = making_->take();
  making_.reset();
  answerNext(now);
}

// Begins to answer the first whole line, if there is one and no answer is in progress.
void ControlSession::answerNext(Time now) {
  while (!isBusy() && !input_.empty()) {
    size_t end = input_.find('\n');
    if (end == std::string::npos && input_.size() <= kMaxLine && !ended_) return;
    std::string request = input_.substr(0, end);
    input_.erase(0, end == std::string::npos ? end : end + 1);
    if (request.size() > kMaxLine) {
      answer_.push_back(
          controlError("a request has at most " + std::to_string(kMaxLine) + " bytes"));
      input_.clear();
      ended_ = true;
    } else if (request.find_first_not_of(" \t\r") != std::string::npos) {
      auto parsed = parseControlRequest(request);
      auto* meant = std::get_if<ControlRequest>(&parsed);
      UniqueFd file = std::exchange(file_, UniqueFd());
      if (meant) {
        making_.emplace(std::move(*meant), std::move(file), isOwner_, handler_);
      } else {
        answer_.push_back(controlError(std::get<std::string>(parsed)));
      }
    }
    if (isBusy()) since_ = now;
  }
}

}  // namespace braid
