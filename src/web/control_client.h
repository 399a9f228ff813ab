#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "web/answers.h"

namespace braid {

/// Asks a daemon at its control socket. Each request has its own connection, so that a restart of
/// the daemon costs at most one answer.
class ControlClient : public DaemonLink {
 public:
  /// Bytes; twice the largest answer that a daemon sends.
  static constexpr size_t kMaxAnswer = 16 << 20;
  static constexpr int kTimeoutSeconds = 10;  ///< for the whole answer

  /// `socket`: the socket's path. `loop` must outlive the client.
  ControlClient(boost::asio::io_context& loop, std::string socket)
      : loop_(loop), socket_(std::move(socket)) {}
  void ask(const nlohmann::json& request, Done done) override;

 private:
  boost::asio::io_context& loop_;
  std::string socket_;
};

}  // namespace braid
