#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "host/host.h"

namespace braid {

/// A captive portal: it keeps an uplink shut until somebody has logged in on its page.
struct Portal {
  std::string uplink;
  std::string interface;
  std::string url;                 ///< of the page
  std::vector<Address> addresses;  ///< of its web server, over this uplink; sorted
  bool isShut = false;             ///< hosts of the LAN do not reach the page: it is public
  bool operator==(const Portal&) const = default;
};

/// Finds captive portals. An uplink by which no peer is reached is asked for a page that no web
/// server has: that of an address which nobody has (RFC 5737, RFC 9637), and that of a private
/// address which the uplink's name servers give for a peer's name. Who answers all the same has
/// caught the request. No other host is ever asked.
class PortalWatch {
 public:
  /// How long an uplink may be without a path that works before it is asked, and between two
  /// requests. Chosen: longer than a handshake, and short enough for who waits for a page.
  static constexpr Duration kPatience = 4s, kPause = 10s;
  /// The pause grows up to this while nobody answers.
  static constexpr Duration kLongestPause = 60s;
  /// The addresses that nobody has.
  static const Address& nobodyV4();
  static const Address& nobodyV6();

  /// An uplink, and private addresses that its name servers give for the peers' names.
  struct Candidate {
    LookupWay way;
    std::vector<Address> suspects;
  };

  /// `onChange` is called when portals() gives something else than before. `host` must outlive
  /// this.
  PortalWatch(Host& host, std::function<void()> onChange);

  /// `shut`: the uplinks that are up and by which no peer is reached. Their portals stay; those of
  /// all others are forgotten. `anyAddress`: portals()[].addresses has public ones, too; otherwise
  /// a portal could say that hosts of the LAN are to reach whatever it likes past the tunnel.
  void follow(const std::vector<Candidate>& shut, bool anyAddress);
  /// Sends the requests that are due.
  void turn();
  /// When turn() is due; kNever: there is nobody to ask.
  Time deadline() const { return deadline_; }

  const std::vector<Portal>& portals() const { return portals_; }
  /// What changed since the last call: the uplink, and one line; the line of a portal that is over
  /// begins with "no".
  std::vector<std::pair<std::string, std::string>> takeNotes() { return std::exchange(notes_, {}); }
  /// Adds each uplink's portal.
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  struct Watched {
    Candidate candidate;
    Time next = kNever;
    Address asked;        ///< of the last request
    size_t turn = 0;      ///< of the addresses that are asked one after the other
    unsigned silent = 0;  ///< requests without an answer since the last one with
    Portal portal;        ///< without a URL: none was found
    HostPort name;        ///< of the page's server, which is looked up
  };

  static std::vector<Address> serversOf(const Candidate& candidate);
  void onAnswer(const WebAnswer& answer);
  void onResult(const LookupResult& result);
  void collect();

  const Clock& clock_;
  std::function<void()> onChange_;
  std::unique_ptr<WebProbe> probe_;     ///< made when it is needed first
  std::unique_ptr<Resolver> resolver_;  ///< the same
  Host& host_;
  std::map<std::string, Watched> watched_;  ///< by uplink
  std::vector<Portal> portals_;
  std::vector<std::pair<std::string, std::string>> notes_;
  bool anyAddress_ = false;
  Time deadline_ = kNever;
};

}  // namespace braid
