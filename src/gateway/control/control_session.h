#pragma once

// One client of the control socket, without the socket. Protocol: the client sends a line {"cmd":"status"}, some
// commands with arguments beside ("peer":"hub"), the daemon answers with one line of JSON: {"ok":true,...} or
// {"ok":false,"error":"..."}. Further requests may follow. "invite" is for root and the daemon's own user alone. With
// "trace-on" the client passes the descriptor of the file to write to (SCM_RIGHTS), so that
// whoever may talk to the daemon gets no other files written than its own.

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/control/invite_request.h"
#include "host/unique_fd.h"
#include "tunnel/session/measure_request.h"
#include "tunnel/status.h"

namespace braid {

/// What the control socket asks of the daemon. Called on the event loop; must not block.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  /// `flows`: how many inner flows to list (Tunnel::status).
  virtual TunnelStatus tunnelStatus(size_t flows) = 0;
  virtual GatewayStatus gatewayStatus() = 0;
  /// Reads the configuration file again. Gives what is wrong with the file (several lines); empty: the new
  /// configuration holds now.
  virtual std::string reload() = 0;
  /// Writes the recovery trace to this file from now on; with a `file` that owns nothing, ends the trace. Gives
  /// what is wrong with the file; empty: done.
  virtual std::string trace(UniqueFd file) = 0;
  /// Makes an invitation for another gateway.
  virtual InviteResult invite(const InviteRequest& request) = 0;
  virtual const History& history() = 0;
  /// A load test of a peer's paths (PeerLoadTest). Gives what is wrong; empty: it runs.
  virtual std::string startTest(const std::string& peer, const MeasureRequest& request) = 0;
  virtual void stopTest() = 0;
  /// The last one, and the figures of its peer; without one empty.
  virtual std::pair<MeasureStatus, PeerStatus> testStatus() = 0;
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
/// The answer to a request: one line with its line end. `file`: what came with the request. `isOwner`: the client is root or
/// the daemon's own user, who may add peers by the configuration as well.
std::string answerControl(const ControlRequest& request, UniqueFd file, bool isOwner,
                          ControlHandler& handler);
/// An answer that says no: one line with its line end.
std::string controlError(std::string_view text);

class ControlSession {
 public:
  static constexpr size_t kMaxLine = 4096;         ///< bytes of a request; a longer one ends the session
  static constexpr size_t kMaxAnswer = 8 << 20;    ///< bytes; a longer answer becomes an error
  static constexpr Duration kIdleTimeout = 60s;    ///< for the next whole request
  static constexpr Duration kAnswerTimeout = 10s;  ///< for taking a whole answer

  /// `handler` must outlive the session. `isOwner`: see answerControl().
  ControlSession(ControlHandler& handler, bool isOwner, Time now)
      : handler_(handler), isOwner_(isOwner), since_(now) {}

  /// Bytes from the client; only when wantsInput(). Takes all of them.
  void onInput(std::string_view bytes, Time now);
  /// A descriptor that came with the bytes of the next onInput(). The last one counts, for the request that
  /// is answered next.
  void onDescriptor(UniqueFd file) { file_ = std::move(file); }
  /// The client sends no more; what it asked is still answered.
  void onEnd(Time now);
  /// The client took the first n bytes of output().
  void onWritten(size_t n, Time now);

  /// True while bytes may be read: one answer at a time, so a client that does not read cannot fill memory.
  bool wantsInput() const { return !ended_ && answer_.empty(); }
  /// Bytes for the client now.
  std::string_view output() const { return std::string_view(answer_).substr(written_); }
  /// Nothing more to do: close.
  bool finished() const { return ended_ && answer_.empty(); }
  /// When to give up on the client.
  Time deadline() const { return since_ + (answer_.empty() ? kIdleTimeout : kAnswerTimeout); }

 private:
  void answerNext(Time now);
  ControlHandler& handler_;
  bool isOwner_;
  std::string input_;   ///< what is not answered yet: at most kMaxLine and one read more
  UniqueFd file_;       ///< what came with `input_`
  std::string answer_;  ///< being written; empty between requests
  size_t written_ = 0;
  bool ended_ = false;  ///< no more bytes come in
  Time since_;          ///< start of waiting for a request, or for the client to take the answer
};

}  // namespace braid
