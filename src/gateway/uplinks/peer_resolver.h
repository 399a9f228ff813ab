#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "gateway/uplinks/working_paths.h"
#include "host/host.h"

namespace braid {

/// Resolves the addresses of peers that are configured by host name: over each uplink, because one
/// uplink may give another answer than the others (a captive portal, a provider's own network).
class PeerResolver {
 public:
  /// `onChange` is called when peers() or asksHere() gives something else than before. All
  /// arguments must outlive this.
  PeerResolver(Host& host, LogLimiter& log, std::function<void()> onChange);

  /// Looks up the names of these peers over these uplinks. `working`: the paths to them that work.
  /// `all`: also names with an answer by which the peer is reached. Sets the deadline of the next
  /// lookup; there is none when there was no name to look up. After a failure the next lookup is
  /// soon.
  void resolve(const std::vector<PeerConfig>& peers, const std::vector<LookupWay>& ways,
               const WorkingPaths& working, bool all);
  /// Sets the deadline of the next resolve() if there is none.
  void retryLater();
  /// The network has changed: makes the next lookup due at once.
  void retryNow();
  /// When resolve() is due again.
  Time deadline() const { return deadline_; }

  /// An uplink whose name servers lie, as those of a captive portal before the login.
  struct Portal {
    std::string uplink;
    std::string text;  ///< one line
  };
  /// The portals that were found since the last call.
  std::vector<Portal> takePortals() { return std::exchange(portals_, {}); }

  /// For Tunnel::setPeers: each peer's configured endpoints, and those that its names resolve to.
  std::vector<PeerOptions> peers(const std::vector<PeerConfig>& peers) const;
  /// Whether a program of this host, on a loopback address, was asked over one of the uplinks.
  bool asksHere() const;
  /// What the names are over an uplink, as its name servers say.
  std::vector<Address> foundOver(const std::string& uplink) const;
  /// Adds the servers that were asked over each uplink.
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  /// At boot the resolver often becomes available a moment later.
  static constexpr Duration kFirstPause = 1s;

  /// What a name is over one uplink.
  struct Answer {
    std::vector<Endpoint> found;
    /// No path came of `found` until the next lookup: the other uplinks' answers are tried as well.
    bool doubted = false;
    bool works = false;          ///< the peer had a path over the uplink at the last resolve()
    Time since{};                ///< when `found` was new
    std::vector<Endpoint> good;  ///< by which the peer had a path before; tried again when in doubt
  };
  using Answers = std::map<std::string, Answer>;  // by uplink

  void noteFailure();
  void onResult(const LookupResult& result);
  void notePortal(const HostPort& name, const Answers& answers, const std::string& uplink);
  /// The answers of all uplinks except this one.
  std::vector<Endpoint> ofOthers(const Answers& answers, const std::string& uplink) const;

  const Clock& clock_;
  LogLimiter& log_;
  std::function<void()> onChange_;
  std::unique_ptr<Resolver> resolver_;
  std::vector<std::string> uplinks_;  // of the last resolve()
  std::map<HostPort, Answers> found_;
  std::map<std::string, LinkResolvers> asked_;  // by uplink
  std::vector<Portal> portals_;
  Time deadline_ = kNever;
  Duration pause_ = kFirstPause;  // until the next lookup after a failure
  bool begun_ = false;            // there was a resolve()
  bool failed_ = false;           // a lookup failed since the last resolve()
};

}  // namespace braid
