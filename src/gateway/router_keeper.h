#pragma once

#include <memory>
#include <string>

#include "gateway/config/config.h"
#include "host/host.h"

namespace braid {

/// Makes the host a router for the tunnel, as far as the configuration asks for it: forwarding, masquerade and ports that
/// lead to hosts behind peers. That this gateway has switched forwarding on, and what was there before, is kept in a file
/// beside its control socket, for the process after one that was killed.
class RouterKeeper {
 public:
  /// `host` must outlive this. `device`: the name that the host gave it.
  RouterKeeper(Host& host, std::string device) : host_(host), device_(std::move(device)) {}
  ~RouterKeeper() { stop(); }
  RouterKeeper(const RouterKeeper&) = delete;
  RouterKeeper& operator=(const RouterKeeper&) = delete;

  /// Throws SystemError with a remedy: then what was there stays.
  void configure(const Config& next);
  /// configure() in place of a configuration that cannot be carried out; what fails is logged.
  void goBackTo(const Config& config);
  /// Forwarding may have been switched on anew, by this gateway or another one.
  void note();
  /// The host is as it was.
  void stop();

 private:
  void forward(const Config& next);
  void endForwarding();
  void remember(const std::string& text);

  Host& host_;
  std::string device_;
  std::unique_ptr<Translator> translator_;  ///< null: nothing is translated
  Translation applied_;
  bool forwards_ = false;
  std::string memory_;      ///< path of the file
  std::string remembered_;  ///< its text
};

}  // namespace braid
