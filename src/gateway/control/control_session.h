#pragma once

// One client of the control socket, without the socket. Protocol: the client sends a line {"cmd":"status"}, some
// commands with arguments beside ("peer":"hub"), the daemon answers with one line of JSON: {"ok":true,...} or
// {"ok":false,"error":"..."}. Further requests may follow. "invite" is for root and the daemon's own user alone. With
// "trace-on" the client passes the descriptor of the file to write to (SCM_RIGHTS), so that
// whoever may talk to the daemon gets no other files written than its own.

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "gateway/control/control_answer.h"
#include "gateway/control/control_handler.h"
#include "host/unique_fd.h"

namespace braid {

class ControlSession {
 public:
  static constexpr size_t kMaxLine = 4096;         ///< bytes of a request; a longer one ends the session
  static constexpr Duration kIdleTimeout = 60s;    ///< for the next whole request
  static constexpr Duration kAnswerTimeout = 10s;  ///< for making a whole answer and taking it

  /// `handler` must outlive the session. `isOwner`: see ControlAnswer.
  ControlSession(ControlHandler& handler, bool isOwner, Time now)
      : handler_(handler), isOwner_(isOwner), since_(now) {}

  /// Bytes from the client; only when wantsInput(). Takes all of them.
  void onInput(std::string_view bytes, Time now);
  /// A descriptor that came with the bytes of the next onInput(). The last one counts, for the request that
  /// is answered next.
  void onDescriptor(UniqueFd file) { file_ = std::move(file); }
  /// The client sends no more; what it asked is still answered.
  void onEnd(Time now);
  /// Makes the next part of an answer; while wantsTurn(), once in a turn of the event loop.
  void onTurn(Time now);
  /// The client took the first n bytes of output().
  void onWritten(size_t n, Time now);

  /// True while bytes may be read: one answer at a time, so a client that does not read cannot fill memory.
  bool wantsInput() const { return !ended_ && !isBusy(); }
  bool wantsTurn() const { return making_.has_value(); }
  /// Bytes for the client now.
  std::string_view output() const {
    return answer_.empty() ? std::string_view() : std::string_view(answer_.front()).substr(written_);
  }
  /// Nothing more to do: close.
  bool finished() const { return ended_ && !isBusy(); }
  /// When to give up on the client.
  Time deadline() const { return since_ + (isBusy() ? kAnswerTimeout : kIdleTimeout); }

 private:
  bool isBusy() const { return making_ || !answer_.empty(); }
  void answerNext(Time now);

  ControlHandler& handler_;
  bool isOwner_;
  std::string input_;  ///< what is not answered yet: at most kMaxLine and one read more
  UniqueFd file_;      ///< what came with `input_`
  std::optional<ControlAnswer> making_;
  std::deque<std::string> answer_;  ///< what is left to write of an answer that is made; no piece is empty
  size_t written_ = 0;              ///< of the first piece
  bool ended_ = false;              ///< no more bytes come in
  Time since_;                      ///< start of waiting for a request, or for the client to take the answer
};

}  // namespace braid
