#include "gateway/control/control_session.h"

#include <utility>
#include <variant>

#include "gateway/control/control_request.h"

namespace braid {

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

// Begins to answer the first whole line, if there is one and no answer is on its way.
void ControlSession::answerNext(Time now) {
  while (!isBusy() && !input_.empty()) {
    size_t end = input_.find('\n');
    if (end == std::string::npos && input_.size() <= kMaxLine && !ended_) return;
    std::string request = input_.substr(0, end);
    input_.erase(0, end == std::string::npos ? end : end + 1);
    if (request.size() > kMaxLine) {
      answer_.push_back(controlError("a request has at most " + std::to_string(kMaxLine) + " bytes"));
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
