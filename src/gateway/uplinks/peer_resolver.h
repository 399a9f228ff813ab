#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "host/host.h"

namespace braid {

/// Resolves the addresses of peers that are configured by host name.
class PeerResolver {
 public:
  /// `onChange` is called when peers() returns other endpoints than before. All arguments must
  /// outlive this.
  PeerResolver(Host& host, LogLimiter& log, std::function<void()> onChange);

  /// Looks up the names of these peers; for peers in `except`, only names that have no answer yet.
  /// Sets the deadline of the next lookup; there is none when there was no name to look up. After a
  /// failure the next lookup is soon.
  void resolve(const std::vector<PeerConfig>& peers, const std::set<std::string>& except);
  /// Sets the deadline of the next resolve() if there is none.
  void retryLater();
  /// The network has changed: makes a pending lookup due at once.
  void retryNow();
  /// When resolve() is due again.
  Time deadline() const { return deadline_; }

  /// For Tunnel::setPeers: each peer's configured endpoints, and those that its names resolve to.
  std::vector<PeerOptions> peers(const std::vector<PeerConfig>& peers) const;

 private:
  /// At boot the resolver often becomes available a moment later.
  static constexpr Duration kFirstPause = 1s;

  void noteFailure();
  void onResult(const HostPort& name, const std::vector<Endpoint>& found);

  const Clock& clock_;
  LogLimiter& log_;
  std::function<void()> onChange_;
  std::unique_ptr<Resolver> resolver_;
  std::map<HostPort, std::vector<Endpoint>> found_;
  Time deadline_ = kNever;
  Duration pause_ = kFirstPause;  // until the next lookup after a failure
  bool failed_ = false;           // a lookup failed since the last resolve()
};

}  // namespace braid
