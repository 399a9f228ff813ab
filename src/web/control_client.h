#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "web/daemon_link.h"

namespace braid {

/// Asks a daemon at its control socket; each question has a connection of its own, so that a restart of the daemon
/// costs one answer at most.
class ControlClient : public DaemonLink {
 public:
  static constexpr size_t kMaxAnswer = 16 << 20;  ///< bytes; twice what a daemon sends
  static constexpr int kTimeoutSeconds = 10;      ///< for the whole answer

  /// `socket`: its path. `loop` must outlive the client.
  ControlClient(boost::asio::io_context& loop, std::string socket)
      : loop_(loop), socket_(std::move(socket)) {}
  void ask(const nlohmann::json& request, Done done) override;

 private:
  boost::asio::io_context& loop_;
  std::string socket_;
};

}  // namespace braid
