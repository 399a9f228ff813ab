#include "gateway/control/control_answer.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace braid {
namespace {

using nlohmann::json;

constexpr size_t kPiece = 64 << 10;  // bytes; a piece is sent by few writes

// Gives what is wrong; empty: it runs.
std::string startTest(const ControlRequest& request, ControlHandler& handler) {
  if (!(request.seconds > 0 && request.seconds <= toSeconds(MeasureRequest::kLongest)) ||
      request.bytes == 0 || request.bytes > MeasureRequest::kMostBytes) {
    return "a test takes up to 60 seconds and 10 GiB, and more than nothing";
  }
  return handler.startTest(request.peer,
                           {request.path, fromSeconds(request.seconds), request.bytes, request.metered});
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

// Whole figures cost the more the more peers there are: the rows come in the next turns.
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

// What a command does, and says in one piece.
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
    case ControlCommand::kVersion:
      answer = {{"version", handler_.gatewayStatus().version}};
      break;
    case ControlCommand::kReload:
      problem = handler_.reload();
      break;
    default:
      break;  // begin() has the others
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

// False: there is nothing more to begin with, or the answer began anew.
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

}  // namespace braid
