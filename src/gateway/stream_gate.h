#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log.h"
#include "host/host_network.h"
#include "host/network_table.h"
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
  /// So long connections between two hosts stay packets after the peer has forbidden a stream between them. Ours: each time
  /// that it is over, one connection is reset.
  static constexpr Duration kAvoid = 600s;
  /// Pairs of hosts of which that is remembered; then the oldest is forgotten. Ours: a rule for each.
  static constexpr size_t kMostAvoided = 64;

  /// Takes away what a daemon that was killed has left in the host's rules, whether streams are on now or not. Throws
  /// SystemError.
  static void removeStale(HostNetwork& network);

  /// All must outlive this.
  StreamGate(StreamHost& host, HostNetwork& network, const StreamLanes& lanes, LogLimiter& log)
      : host_(host), network_(network), lanes_(lanes), log_(log) {}

  /// What the configuration says. `device`: name and index of the interface. Call follow() and update() afterwards.
  void configure(const Config& config, const std::string& device, int index);
  /// What the host says of its interfaces. Strangers are behind uplinks and, when this gateway listens, behind interfaces
  /// that have or had a default route since configure(), or an address that it listens at: no new connection from there is
  /// taken over. Call update() afterwards.
  void follow(const NetworkTable& table);
  /// Takes connections over as the peers can take them now; `room`: there may be more of them.
  void update(bool room, Time now);
  /// The peer has forbidden a stream between these two hosts: as a rule, because the destination is the peer itself. Seen by
  /// the next update(), which is due at once if the rules have not changed for kLook.
  void avoid(const StreamPair& pair, Time now);
  /// When to call update() at the latest.
  Time deadline() const { return deadline_; }
  /// Nothing is taken over any more, and the host is as it was.
  void stop();

  /// New connections are taken over.
  bool open() const { return open_; }
  /// Those to this address, too.
  bool takes(const Address& destination) const;
  /// How often no more were taken over for want of room.
  uint64_t lifts() const { return lifts_; }

 private:
  struct Avoided {
    StreamPair pair;
    Time until;
  };

  void steer();
  void listAvoided(Time now);
  void apply(bool takeNew, Time now);

  StreamHost& host_;
  HostNetwork& network_;
  const StreamLanes& lanes_;
  LogLimiter& log_;
  std::vector<AddressRange> peers_;  ///< all that lies behind peers
  std::set<std::string> uplinks_;    ///< their interfaces
  bool listens_ = false;
  std::vector<Address> listenedAt_;  ///< wildcards, which no interface has, included
  std::set<std::string> public_;     ///< interfaces that strangers are behind since this gateway listens
  Interception wanted_, applied_;
  bool steered_ = false;  ///< rules and routes for the mark are there
  bool made_ = false, open_ = false;
  Time deadline_ = kNever;
  Time again_ = Time::min();
  Time lastChange_ = Time::min();
  Time lastAdd_ = Time::min();   ///< when a peer was taken that had not been
  std::deque<Avoided> avoided_;  ///< oldest first
  uint64_t lifts_ = 0;
};

}  // namespace braid
