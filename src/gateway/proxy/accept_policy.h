#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "host/network.h"
#include "tunnel/api/streams.h"

namespace braid {

/// Decides which destinations at this side peers may reach by streams. A packet of a peer passes
/// this host's forwarding and firewall; the connection of a stream is made by this host itself and
/// passes neither. So streams may reach only what `streams.accept` names, or without it, what the
/// host would forward packets to, and never this host.
class AcceptPolicy {
 public:
  /// For how long an answer of the kernel about forwarding is used.
  static constexpr Duration kLook = 1s;

  /// `device`: name of the gateway's interface. All references must outlive this.
  AcceptPolicy(HostNetwork& network, const NetworkMonitor& monitor, std::string device,
               LogLimiter& log)
      : network_(network), monitor_(monitor), device_(std::move(device)), log_(log) {}

  void configure(const Config& config);
  /// Why a stream to this destination is refused; nullopt: it is not. kForbidden: packets may reach
  /// it. kLimit: not known at the moment.
  std::optional<StreamCause> refusal(const Endpoint& destination, Time now);

 private:
  bool forwards(Address::Family family, Time now);

  /// Whether the host forwards packets of a family that come from the device.
  struct Forwarding {
    Time until = Time::min();  ///< when to ask again
    bool on = false;
  };

  HostNetwork& network_;
  const NetworkMonitor& monitor_;
  std::string device_;
  LogLimiter& log_;
  std::vector<StreamRule> accept_;
  std::array<Forwarding, 2> forwarding_;  ///< IPv4, IPv6
};

}  // namespace braid
