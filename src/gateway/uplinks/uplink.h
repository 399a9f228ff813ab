#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/uplinks/socket_table.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/packet_filter.h"
#include "tunnel/api/options.h"

namespace braid {

/// What the state of the host means for one uplink.
struct UplinkDecision {
  bool up = false;     ///< can be used now
  std::string reason;  ///< why it is down; when up, a warning or empty
  int link = 0;        ///< interface index; 0: there is none
  Address v4, v6;      ///< local addresses to bind to; unset: this family cannot be used
  std::vector<RouteSpec> routes;
  std::vector<RuleSpec> rules;
};

/// What the routes and rules of an uplink depend on besides its configuration.
struct UplinkPlace {
  HostNumbers numbers;
  unsigned number = 0;   ///< of the uplink, 0 to 31: selects routing table, rules and mark
  bool replies = false;  ///< replies to what came in by the uplink are to leave by it
};

/// The policy, without I/O. `v4` and `v6` are the addresses in use. They are kept while they are
/// good, so a new address beside them changes nothing.
UplinkDecision decideUplink(const UplinkConfig& config, const UplinkPlace& place,
                            const NetworkTable& table, const Address& v4, const Address& v6);

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
  /// The marks of such replies, by interface.
  std::vector<FilterRules::Reply> replyMarks() const;

  /// Replaces the configuration. Uplinks with unchanged name, interface and addresses keep their
  /// sockets.
  void configure(std::vector<UplinkConfig> configs, const NetworkTable& table);
  /// Follows the host's state. Returns true when specs() changed.
  bool update(const NetworkTable& table);
  /// Closes all sockets and removes all source routes.
  void close();

  /// For Tunnel::setUplinks, in the order of the configuration.
  std::vector<UplinkSpec> specs() const;
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
  };
  bool refresh(Uplink& uplink, const NetworkTable& table);
  void applyRouting(Uplink& uplink, const UplinkDecision& wanted);
  void dropRouting(Uplink& uplink);
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
