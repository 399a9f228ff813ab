#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log.h"
#include "host/host_network.h"
#include "host/stream_host.h"
#include "tunnel/stream_lanes.h"

namespace braid {

/// Says which new TCP connections become streams: those to peers that can take them now, that the configuration names,
/// while there is room. All others stay packets, and nobody notices: they are never accepted.
class StreamGate {
 public:
  /// Between two looks at what the peers can. Ours.
  static constexpr Duration kLook = 1s;
  /// Until the host is asked again after it refused.
  static constexpr Duration kRetry = 60s;

  /// All must outlive this.
  StreamGate(StreamHost& host, HostNetwork& network, const StreamLanes& lanes, LogLimiter& log)
      : host_(host), network_(network), lanes_(lanes), log_(log) {}

  /// What the configuration says. `device`: name and index of the interface. Call update() afterwards.
  void configure(const Config& config, const std::string& device, int index);
  /// Takes connections over as the peers can take them now; `room`: there may be more of them.
  void update(bool room, Time now);
  /// When to call update() at the latest.
  Time deadline() const { return deadline_; }
  /// Nothing is taken over any more, and the host is as it was.
  void stop();

  /// New connections are taken over.
  bool open() const { return open_; }
  /// How often no more were taken over for want of room.
  uint64_t lifts() const { return lifts_; }

 private:
  void steer();
  void apply(bool takeNew, Time now);

  StreamHost& host_;
  HostNetwork& network_;
  const StreamLanes& lanes_;
  LogLimiter& log_;
  std::vector<AddressRange> peers_;  ///< all that lies behind peers
  Interception wanted_, applied_;
  bool steered_ = false;  ///< rules and routes for the mark are there
  bool made_ = false, open_ = false;
  Time deadline_ = kNever;
  Time again_ = Time::min();
  uint64_t lifts_ = 0;
};

}  // namespace braid
