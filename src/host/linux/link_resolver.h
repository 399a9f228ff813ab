#pragma once

#include <list>
#include <memory>
#include <vector>

#include "host/host.h"
#include "host/linux/link_resolvers.h"
#include "host/linux/loop.h"
#include "host/linux/network_manager.h"

namespace braid {

/// Looks names up over single uplinks, by c-ares. The hosts file is read first. Each lookup has
/// sockets of its own, bound to the uplink's interface and address and marked, so that no route
/// into the tunnel leads them away. Servers on this host are asked by unbound sockets.
class LinkResolver final : public Resolver {
 public:
  /// `onResult` is called on the loop, never from within request(). `port`: of the servers.
  /// Throws SystemError.
  LinkResolver(Loop& loop, OnResult onResult, LinkResolverFiles files = LinkResolverFiles(),
               uint16_t port = 53);
  /// Ends the lookups in progress.
  ~LinkResolver() override;
  LinkResolver(const LinkResolver&) = delete;
  LinkResolver& operator=(const LinkResolver&) = delete;

  void request(const LookupWay& way, const HostPort& name) override;

 private:
  class Lookup;
  void begin(Lookup& lookup, const std::vector<Address>& managers);
  void deliver();

  Loop& loop_;
  OnResult onResult_;
  LinkResolverFiles files_;
  uint16_t port_;
  NetworkManager manager_;
  std::list<std::unique_ptr<Lookup>> lookups_;
  Timer done_;  ///< set when a lookup has its result
};

}  // namespace braid
