#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/log/log.h"
#include "host/host.h"

namespace braid {

/// A captive portal: it keeps an uplink shut until somebody has logged in on its page.
struct Portal {
  static constexpr uint16_t kHttp = 80, kHttps = 443;
  std::string uplink;
  std::string url;  ///< of the page
  uint16_t port = kHttp;
  /// Of the page's web server, as the portal itself says: its word for it is worth nothing. Sorted.
  std::vector<Address> addresses;
  bool operator==(const Portal&) const = default;
};

/// Host and port of "http://HOST[:PORT]/..." or "https://...". nullopt: the URL is of another kind,
/// or HOST is neither an address nor a plain name.
std::optional<HostPort> pageServer(std::string_view url);

/// Finds captive portals. An uplink by which no peer is reached is asked for the page of two
/// addresses that nobody has (RFC 5737, RFC 9637), and of private addresses that its name servers
/// give for a peer's name. A portal intercepts such requests and redirects to its page. No other
/// host is ever asked.
class PortalWatch {
 public:
  /// How long an uplink may be without a path that works before it is asked, and between two
  /// rounds of requests. Chosen: longer than a handshake, and short enough for who waits for a
  /// page.
  static constexpr Duration kPatience = 4s, kPause = 10s;
  /// The pause grows up to this while nobody answers.
  static constexpr Duration kLongestPause = 60s;
  /// The addresses that nobody has.
  static const std::vector<Address>& nobodys();
  static bool isNobodys(const Address& address);

  /// An uplink, and private addresses that its name servers give for the peers' names.
  struct Candidate {
    LookupWay way;
    std::vector<Address> suspects;
  };

  /// All arguments must outlive this.
  PortalWatch(Host& host, LogLimiter& log) : host_(host), log_(log) {}

  /// `shut`: the uplinks that are up and by which no peer is reached. Their portals stay; those of
  /// all others are forgotten. An uplink with other addresses than before begins again.
  /// `looksUp`: a name of a page is looked up, which only its uplink's servers are asked for.
  void follow(const std::vector<Candidate>& shut, bool looksUp);
  /// Sends the requests that are due. What the host refuses is logged, and tried again.
  void turn();
  /// When turn() is due; kNever: there is nobody to ask.
  Time deadline() const { return deadline_; }

  const std::vector<Portal>& portals() const { return portals_; }
  /// Whether portals() has changed since the last call.
  bool takeChange() { return std::exchange(changed_, false); }
  /// The portals that began and ended since the last call: the uplink, and one line.
  std::vector<std::pair<std::string, std::string>> takeNotes() { return std::exchange(notes_, {}); }

 private:
  struct Watched {
    Candidate candidate;
    Time next = kNever;
    std::set<Address> asked, answered;  ///< since the last turn; a portal has answered
    unsigned silent = 0;                ///< turns in a row after which no portal has answered
    Address shows;                      ///< the server that showed the portal
    Portal portal;                      ///< without a URL: none was found
    HostPort name;                      ///< of the page's server; empty: it has an address
  };

  static std::vector<Address> serversOf(const Candidate& candidate);
  void ask(Watched& each);
  void lookUp(Watched& each);
  void onAnswer(const WebAnswer& answer);
  void onResult(const LookupResult& result);
  void collect();

  Host& host_;
  LogLimiter& log_;
  std::unique_ptr<WebProbe> probe_;         ///< made when it is needed first
  std::unique_ptr<Resolver> resolver_;      ///< the same
  std::map<std::string, Watched> watched_;  ///< by uplink
  std::vector<Portal> portals_;
  std::vector<std::pair<std::string, std::string>> notes_;
  bool changed_ = false, looksUp_ = false;
  Time deadline_ = kNever;
};

}  // namespace braid
