#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/uplinks/socket_table.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/packet_filter.h"
#include "tunnel/api/options.h"

namespace braid {

/// Keeps the sockets and source routes of the configured uplinks in step with the host's
/// interfaces.
///
/// A socket is bound to interface and address, and closed when one of the two disappears. When only
/// the carrier is lost, the socket stays and the uplink is marked down, so subflows continue where
/// they stopped when the cable is back.
class Uplinks {
 public:
  /// The references must outlive this.
  Uplinks(SocketTable& sockets, HostNetwork& network, SocketIds& ids,
          const HostNumbers& numbers = {});

  /// Whether replies to what came in by an uplink are to leave by it, in spite of the host's
  /// routes. Takes effect with the next update() or configure().
  void keepReplies(bool on) { replies_ = on; }
  /// The marks of such replies, by interface; none while keepReplies() is off.
  std::vector<FilterRules::Reply> replyMarks() const;

  /// Removes the routes and rules of uplinks that a killed daemon left, whatever its configuration
  /// was. Call it before configure(). Throws SystemError.
  void removeStale() { network_.removeStaleTables(numbers_.uplinkTable(0), kMaxUplinks); }
  /// Replaces the configuration. Uplinks with unchanged name, interface and addresses keep their
  /// sockets.
  void configure(std::vector<UplinkConfig> configs, const NetworkTable& table);
  /// Follows the host's state. Returns true when specs() changed.
  bool update(const NetworkTable& table);
  /// How long an address may be without a path that works before another one of its interface is
  /// tried. Chosen: longer than the handshakes of a slow path and the silence of a short outage.
  static constexpr Duration kSourceTrial = 15s;
  /// Whether some interface has several addresses of a family, so that judgeSources() has a choice.
  bool hasAlternatives(const NetworkTable& table) const;
  /// Gives up addresses without a path that works, as those of an IPv6 prefix that the provider has
  /// replaced. `working`: the sockets of paths that work; `called`: the families of the peers'
  /// endpoints. Call it every few seconds. Returns true when specs() changed.
  bool judgeSources(const std::set<SocketId>& working, const std::set<Address::Family>& called,
                    const NetworkTable& table, Time now);
  /// Closes all sockets and removes all source routes.
  void close();

  /// For Tunnel::setUplinks, in the order of the configuration.
  std::vector<UplinkSpec> specs() const;
  /// Over which uplinks names can be looked up now. `inside`: LookupWay::inside.
  std::vector<LookupWay> ways(const std::vector<Address>& inside = {}) const;
  /// How packets that others send through this host leave by an uplink that is up.
  struct Exit {
    std::string uplink, interface;
    uint32_t mark = 0;            ///< of such packets; 0: there is none (keepReplies())
    bool v4 = false, v6 = false;  ///< it has a next hop for everything of this family
  };
  std::vector<Exit> exits() const;
  /// The state of each uplink to show to people, in the same order.
  std::vector<UplinkStatus> status() const;
  /// Something was refused that may work later, or warn() has something to report: call update()
  /// and then warn() after about a second.
  bool wantsRetry() const;
  /// Reports what is doubtful about uplinks that are up. This is not done at once, because an
  /// interface gets its address and its routes one by one.
  void warn();
  /// Lines about what changed since the last call, for the log.
  std::vector<std::string> takeNotes();

 private:
  struct Uplink {
    UplinkConfig config;
    unsigned slot = 0;
    UplinkDecision now;
    unsigned switchedOff = 0;
    bool routed = false;    // routes and rules of `now` are set
    bool failed = false;    // the last attempt was refused
    bool doubtful = false;  // has a warning that was not reported yet
    std::string warned;     // the warning that was reported
    std::string noted;      // the last line reported
    std::vector<UplinkSpec::Socket> sockets;
    DeadSources dead;
    /// The address of a family, and when it was new or last had a path that works.
    std::pair<Address, Time> lived4, lived6;
  };
  bool refresh(Uplink& uplink, const NetworkTable& table);
  void clearRouting(Uplink& uplink, const UplinkDecision& wanted);
  void applyRouting(Uplink& uplink, const UplinkDecision& wanted, Address::Family family);
  size_t sourcesOf(const Uplink& uplink, const NetworkTable& table, Address::Family family) const;
  /// Removes the uplink's routes and rules, except for those of `except`.
  void dropRouting(Uplink& uplink, const UplinkDecision* except = nullptr);
  void applySockets(Uplink& uplink, const UplinkDecision& wanted, Address::Family family,
                    bool& changed);
  void closeSockets(Uplink& uplink, Address::Family family);
  void closeUplink(Uplink& uplink);
  unsigned freeSlot() const;
  void note(Uplink& uplink);

  SocketTable& sockets_;
  HostNetwork& network_;
  SocketIds& ids_;
  HostNumbers numbers_;
  bool replies_ = false;
  std::vector<Uplink> uplinks_;
  std::vector<std::string> notes_;
};

}  // namespace braid
