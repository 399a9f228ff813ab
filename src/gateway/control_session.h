#pragma once

// One client of the control socket, without the socket. Protocol: the client sends a line {"cmd":"status"},
// the daemon answers with one line of JSON: {"ok":true,...} or {"ok":false,"error":"..."}. Further requests
// may follow.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"
#include "gateway/gateway_status.h"
#include "tunnel/status.h"

namespace braid {

/// What the control socket asks of the daemon. Called on the event loop; must not block.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  virtual TunnelStatus tunnelStatus() = 0;
  virtual GatewayStatus gatewayStatus() = 0;
  /// Reads the configuration again. Gives what is wrong with it (several lines); empty: it holds now.
  virtual std::string reload() = 0;
};

enum class ControlCommand : uint8_t { kStatus, kPaths, kFlows, kPeers, kReload, kVersion };

/// A request line without its line end: the command, or what is wrong in plain words.
std::variant<ControlCommand, std::string> parseControlRequest(std::string_view line);

/// The answer to a command: one line with its line end.
std::string answerControl(ControlCommand command, ControlHandler& handler);

class ControlSession {
 public:
  static constexpr size_t kMaxLine = 1024;       ///< bytes of a request; a longer one ends the session
  static constexpr size_t kMaxAnswer = 8 << 20;  ///< bytes; a longer answer becomes an error
  static constexpr Duration kIdleTimeout = 60s;  ///< a client that asks nothing
  static constexpr Duration kWriteTimeout = 5s;  ///< a client that takes no byte of its answer

  ControlSession(ControlHandler& handler, Time now);

  /// Bytes from the client; only when wantsInput(). Takes all of them.
  void onInput(std::string_view bytes, Time now);
  /// The client will send no more; what was asked is still answered.
  void onEnd();
  /// The first n bytes of output() were taken by the client.
  void onWritten(size_t n, Time now);

  /// True while bytes may be read: one answer at a time, so a client that does not read cannot fill memory.
  bool wantsInput() const { return !ending_ && pending_.empty(); }
  /// Bytes for the client now.
  std::string_view output() const { return std::string_view(pending_).substr(written_); }
  /// Nothing more to do: close.
  bool finished() const { return ending_ && pending_.empty(); }
  /// When to give up on the client.
  Time deadline() const { return lastProgress_ + (pending_.empty() ? kIdleTimeout : kWriteTimeout); }

 private:
  void answerNext();
  ControlHandler& handler_;
  std::string input_;    ///< at most one read of bytes beyond kMaxLine
  std::string pending_;  ///< the answer being written
  size_t written_ = 0;
  bool ending_ = false;
  Time lastProgress_;
};

}  // namespace braid
