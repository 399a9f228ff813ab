#pragma once

// One client of the control socket, without the socket itself.
//
// Protocol: the client sends a line {"cmd":"status"}; some commands take arguments beside it, such
// as "peer":"hub". The daemon answers with one line of JSON, {"ok":true,...} or
// {"ok":false,"error":"..."}. Further requests may follow. "invite" is for root and the daemon's
// own user only. With "trace-on" the client passes the descriptor of the file to write to
// (SCM_RIGHTS). So a client that may talk to the daemon cannot make it write files that the client
// itself may not write.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/control/requests.h"
#include "gateway/control/status_json.h"
#include "host/system.h"
#include "tunnel/api/status.h"
#include "tunnel/session/session_options.h"

namespace braid {

/// What the control socket asks of the daemon. Called on the event loop; must not block.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  /// The sums over all peers; the list of peers is empty.
  virtual TunnelStatus tunnelStatus() = 0;
  /// The names of the peers, in the order of their indexes.
  virtual std::vector<std::string> peers() = 0;
  /// The peer at index `place`, with at most `flows` of its inner flows; nullopt: no such peer any
  /// more.
  virtual std::optional<PeerStatus> peerStatus(size_t place, size_t flows) = 0;
  virtual GatewayStatus gatewayStatus() = 0;
  /// Reads the configuration file again. Returns what is wrong with the file (several lines);
  /// empty: the new configuration is in effect.
  virtual std::string reload() = 0;
  /// Writes the recovery trace to this file from now on. A `file` without a descriptor ends the
  /// trace. Returns what is wrong with the file; empty: done.
  virtual std::string trace(UniqueFd file) = 0;
  /// Creates an invitation for another gateway.
  virtual InviteResult invite(const InviteRequest& request) = 0;
  virtual const History& history() = 0;
  /// Starts a load test of a peer's paths (PeerLoadTest). Returns what is wrong; empty: it runs.
  virtual std::string startTest(const std::string& peer, const MeasureRequest& request) = 0;
  virtual void stopTest() = 0;
  /// The last load test, and the figures of its peer; both empty when there was none.
  virtual std::pair<MeasureStatus, PeerStatus> testStatus() = 0;
  /// Starts no new stream for this time (TcpProxy::drain()). Returns how many are open.
  virtual uint64_t drain(Duration time) = 0;
};

/// The answer to one request: one line with its line end. It is made a few rows at a time, and
/// packets are carried in between. So the peers' figures in one answer are from slightly different
/// moments; to get rates, take the differences of two answers.
class ControlAnswer {
 public:
  static constexpr size_t kMaxAnswer = 8 << 20;  ///< bytes; a longer answer becomes an error
  /// Rows (peers, subflows, flows, ...) made per call of work().
  static constexpr size_t kRowsAtOnce = 16;

  /// `file`: the descriptor that came with the request. `isOwner`: the client is root or the
  /// daemon's own user, which may also add peers through the configuration. `handler` must outlive
  /// the answer.
  ControlAnswer(ControlRequest request, UniqueFd file, bool isOwner, ControlHandler& handler)
      : request_(std::move(request)),
        file_(std::move(file)),
        isOwner_(isOwner),
        handler_(handler) {}

  /// Makes the next part; the first call carries out the command. Call until done().
  void work();
  bool done() const { return done_; }
  /// When it is done: the answer in pieces. It is not one long text, because a text that grows is
  /// copied again and again.
  std::deque<std::string> take() { return std::move(pieces_); }

 private:
  void begin();
  void beginPeers(PeerView view);
  void beginHistory();
  void doOrder();
  void refuse(std::string_view why);
  void workOnPeers();
  bool beginPeer();
  void finish(std::string_view end);
  void put(std::string text);

  ControlRequest request_;
  UniqueFd file_;
  bool isOwner_;
  ControlHandler& handler_;
  bool begun_ = false, done_ = false;
  std::deque<std::string> pieces_;
  size_t bytes_ = 0;                    ///< sum of the sizes of `pieces_`
  std::optional<ObjectWriter> object_;  ///< what is being written: the whole answer, or one peer
  // For an answer about peers:
  std::optional<PeerView> view_;
  std::optional<std::vector<std::string>> peers_;  ///< names of the peers when the answer was begun
  size_t place_ = 0;                               ///< index of the next peer
  RecoveryOptions recovery_;
};

/// An error answer: one line with its line end.
std::string controlError(std::string_view text);

class ControlSession {
 public:
  static constexpr size_t kMaxLine = 4096;  ///< bytes of a request; a longer one ends the session
  static constexpr Duration kIdleTimeout = 60s;    ///< until the next whole request
  static constexpr Duration kAnswerTimeout = 10s;  ///< for making a whole answer and sending it

  /// `handler` must outlive the session. `isOwner`: see ControlAnswer.
  ControlSession(ControlHandler& handler, bool isOwner, Time now)
      : handler_(handler), isOwner_(isOwner), since_(now) {}

  /// Takes bytes from the client, all of them. Call only when wantsInput().
  void onInput(std::string_view bytes, Time now);
  /// Takes a descriptor that came with the bytes of the next onInput(). Only the last one counts,
  /// for the request that is answered next.
  void onDescriptor(UniqueFd file) { file_ = std::move(file); }
  /// The client sends no more. Its pending requests are still answered.
  void onEnd(Time now);
  /// Makes the next part of an answer. Call once per turn of the event loop while wantsTurn().
  void onTurn(Time now);
  /// The client took the first n bytes of output().
  void onWritten(size_t n, Time now);

  /// True while bytes may be read. Only one answer is made at a time, so that a client that does
  /// not read cannot fill the memory.
  bool wantsInput() const { return !ended_ && !isBusy(); }
  bool wantsTurn() const { return making_.has_value(); }
  /// The bytes to send to the client now.
  std::string_view output() const {
    return answer_.empty() ? std::string_view()
                           : std::string_view(answer_.front()).substr(written_);
  }
  /// Nothing is left to do: close the connection.
  bool finished() const { return ended_ && !isBusy(); }
  /// When to give up on the client.
  Time deadline() const { return since_ + (isBusy() ? kAnswerTimeout : kIdleTimeout); }

 private:
  bool isBusy() const { return making_ || !answer_.empty(); }
  void answerNext(Time now);

  ControlHandler& handler_;
  bool isOwner_;
  std::string input_;  ///< bytes not answered yet: at most kMaxLine and one read more
  UniqueFd file_;      ///< the descriptor that came with `input_`
  std::optional<ControlAnswer> making_;
  std::deque<std::string>
      answer_;          ///< what is left to write of an answer that is made; no piece is empty
  size_t written_ = 0;  ///< bytes written of the first piece
  bool ended_ = false;  ///< no more bytes come in
  Time since_;          ///< when the wait for a request began, or for the client to take the answer
};

}  // namespace braid
