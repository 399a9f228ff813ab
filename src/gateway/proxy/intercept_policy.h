#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/stream_host.h"
#include "tunnel/api/streams.h"

namespace braid {

/// Decides which new TCP connections of hosts behind this gateway become streams: those that the
/// configuration names, to peers that can open streams now, while there is room, and unless the
/// host's packet filter would drop them. All other connections are carried as packets. Hosts do not
/// notice the difference, because such connections are never accepted here.
class InterceptPolicy {
 public:
  /// Time between two checks of which peers can open streams.
  static constexpr Duration kLook = 1s;
  /// Time until the next attempt after the host refused the rules.
  static constexpr Duration kRetry = 60s;
  /// After a peer has forbidden a stream between two hosts, connections between them are carried as
  /// packets for this time. Each time it is over, one connection is reset.
  static constexpr Duration kAvoid = 600s;
  /// Most pairs of hosts that avoid() remembers; then the oldest is forgotten. Each pair takes one
  /// rule.
  static constexpr size_t kMostAvoided = 64;

  /// Removes what a killed daemon left in the host's rules. Call it at the start, even when streams
  /// are off. Throws SystemError.
  static void removeStale(HostNetwork& network, const HostNumbers& numbers);

  /// All must outlive this.
  InterceptPolicy(StreamHost& host, HostNetwork& network, const StreamApi& lanes, LogLimiter& log)
      : host_(host), network_(network), lanes_(lanes), log_(log) {}

  /// Applies the configuration. `device`: name of the gateway's interface. Where the host cannot
  /// give connections back, they are taken over at once. Call setUplinks(), follow() and update()
  /// afterwards.
  void configure(const Config& config, const std::string& device, const HostNumbers& numbers);
  /// The names of the uplinks' interfaces. Call follow() and update() afterwards.
  void setUplinks(const std::vector<std::string>& interfaces);
  /// Follows the host's interfaces. New connections that enter by an outside interface are never
  /// taken over. Outside interfaces are the uplinks. When this gateway listens, they are also the
  /// interfaces that have or had a default route since configure(), or that have or had an address
  /// the gateway listens at, whatever their names are now. Call update() afterwards.
  void follow(const NetworkTable& table);
  /// Makes the rules fit what the peers can open now. `room`: this gateway has room for more
  /// connections.
  void update(bool room, Time now);
  /// The peer has forbidden a stream between these two hosts, usually because the destination is
  /// the peer itself. Takes effect at the next update(), which is due at once unless the rules have
  /// changed within kLook.
  void avoid(const StreamPair& pair, Time now);
  /// When to call update() at the latest.
  Time deadline() const { return deadline_; }
  /// Stops taking connections over, and restores the host's settings.
  void stop();

  /// New connections are taken over.
  bool open() const { return open_; }
  /// New connections to this address are taken over, too.
  bool takes(const Address& destination) const;
  /// New connections are let through to the device first (Interception::waits).
  bool waits() const { return made_ && applied_.waits; }
  /// How often taking over stopped because there was no room.
  uint64_t lifts() const { return lifts_; }

 private:
  struct Avoided {
    StreamPair pair;
    Time until;
  };

  void steer();
  void followPublic(const NetworkTable& table);
  /// Leaves out connections that the host's packet filter would drop.
  void listBarred(Time now);
  void listAvoided(Time now);
  void apply(bool takeNew, Time now);

  StreamHost& host_;
  HostNetwork& network_;
  const StreamApi& lanes_;
  LogLimiter& log_;
  std::vector<AddressRange> peers_;  ///< all address ranges behind peers
  std::set<std::string> uplinks_;    ///< interfaces of the uplinks
  bool listens_ = false;
  std::vector<Address> listenedAt_;  ///< including wildcard addresses, which match no interface
  /// Outside interfaces other than the uplinks, because this gateway listens: name and index. Those
  /// that are gone stay, because they may come back.
  std::map<std::string, int> public_;
  HostNumbers numbers_;
  Interception wanted_, applied_;
  std::vector<StreamApproach> approaches_;  ///< by which connections can come in
  bool isNewApproach_ = false;              ///< they have changed since the filter was looked at
  bool steered_ = false;                    ///< rules and routes for the packet mark are set
  bool made_ = false, open_ = false;
  Time deadline_ = kNever;
  Time again_ = Time::min();
  Time lastChange_ = Time::min();
  Time lastAdd_ = Time::min();   ///< when a peer's range was last added to the rules
  std::deque<Avoided> avoided_;  ///< oldest first
  uint64_t lifts_ = 0;
};

}  // namespace braid
