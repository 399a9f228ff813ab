#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/log.h"
#include "host/host.h"

namespace braid {

/// Knows the addresses of peers that are configured by name.
class NameKeeper {
 public:
  /// `onChange`: peers() gives other endpoints now. All must outlive this.
  NameKeeper(Host& host, LogLimiter& log, std::function<void()> onChange);

  /// Looks up the names of these peers, but for those in `except` only what has no answer yet, and sets the deadline
  /// for the next time: none when there was no name to look up. After a failure the next time is soon.
  void resolve(const std::vector<PeerConfig>& peers, const std::set<std::string>& except);
  /// Sets the deadline of resolve() when there is none.
  void retryLater();
  /// What waits for the deadline need not: the network has changed.
  void retryNow();
  /// When resolve() is due again.
  Time deadline() const { return deadline_; }

  /// For Tunnel::setPeers: the configured endpoints of each peer, and those of its names.
  std::vector<PeerOptions> peers(const std::vector<PeerConfig>& peers) const;

 private:
  /// Ours: at a boot the resolver is often there a moment later.
  static constexpr Duration kFirstPause = 1s;

  void noteFailure();
  void onResult(const HostPort& name, const std::vector<Endpoint>& found);

  const Clock& clock_;
  LogLimiter& log_;
  std::function<void()> onChange_;
  std::unique_ptr<Resolver> resolver_;
  std::map<HostPort, std::vector<Endpoint>> found_;
  Time deadline_ = kNever;
  Duration pause_ = kFirstPause;  // before the next time, after a failure
  bool failed_ = false;           // something that was asked for since the last resolve()
};

}  // namespace braid
