#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/config/config.h"
#include "host/host.h"
#include "host/host_numbers.h"

namespace braid {

/// Makes the host a router for the tunnel, as far as the configuration asks for it: IP forwarding,
/// masquerading, and port forwards to hosts behind peers. A file beside the control socket records
/// that this gateway switched forwarding on, and the setting before that. If this process is
/// killed, the next one restores the setting from the file.
class NatManager {
 public:
  /// `host` must outlive this. `device`: the name that the host gave the TUN/TAP device.
  NatManager(Host& host, std::string device, const HostNumbers& numbers)
      : host_(host), device_(std::move(device)), numbers_(numbers) {}
  ~NatManager() { stop(); }
  NatManager(const NatManager&) = delete;
  NatManager& operator=(const NatManager&) = delete;

  /// `uplinks`: the names of the uplinks' interfaces. Throws SystemError with a remedy; the earlier
  /// settings then stay.
  void configure(const Config& next, const std::vector<std::string>& uplinks);
  /// The same, but failures are logged.
  void configureOrWarn(const Config& config, const std::vector<std::string>& uplinks);
  /// Call when what went into the tunnel takes the uplinks: a flow of datagrams that goes on then
  /// gets their addresses, too. Failures are logged.
  void forgetTunnelled();
  /// Call when forwarding may have been switched on again, by this gateway or another one.
  void note();
  /// Restores the host's settings.
  void stop();

 private:
  void forward(const Config& next, const std::vector<std::string>& uplinks);
  void endForwarding();
  void remember(const std::string& text);

  Host& host_;
  std::string device_;
  HostNumbers numbers_;
  std::unique_ptr<Translator> translator_;  ///< null: nothing is translated
  Translation applied_;
  bool forwards_ = false;
  std::string memory_;      ///< path of the file
  std::string remembered_;  ///< its text
};

}  // namespace braid
