#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <optional>

#include "host/host_network.h"

namespace braid {

/// The routing protocol number (rtm_protocol) that marks routes, rules and addresses as Braid's; free in
/// /etc/iproute2/rt_protos.
inline constexpr uint8_t kBraidProtocol = 66;

/// A request being built; the buffer is large enough for every request of this project.
class NetlinkRequest {
 public:
  /// `flags`: NLM_F_CREATE and the like.
  NetlinkRequest(uint16_t type, uint16_t flags);
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(buffer_); }

  /// The family header of the request, zeroed. To be called once, first.
  template <typename Header>
  Header& body() {
    return *static_cast<Header*>(mnl_nlmsg_put_extra_header(&header(), sizeof(Header)));
  }
  void put(uint16_t type, uint32_t value) { mnl_attr_put_u32(&header(), type, value); }
  void put(uint16_t type, uint8_t value) { mnl_attr_put_u8(&header(), type, value); }
  void put(uint16_t type, const std::string& text) { mnl_attr_put_strz(&header(), type, text.c_str()); }
  void put(uint16_t type, const Address& a) {
    mnl_attr_put(&header(), type, a.view().size(), a.view().data());
  }

 private:
  alignas(nlmsghdr) uint8_t buffer_[1024];
};

/// AF_INET or AF_INET6.
uint8_t socketFamily(Address::Family family);

/// RTM_NEWROUTE or RTM_DELROUTE with Braid's mark. `device`: interface index.
NetlinkRequest routeRequest(uint16_t type, const RouteSpec& route, int device);
/// RTM_NEWRULE or RTM_DELRULE with Braid's mark.
NetlinkRequest ruleRequest(uint16_t type, const RuleSpec& rule);
/// RTM_NEWADDR or RTM_DELADDR with Braid's mark.
NetlinkRequest addressRequest(uint16_t type, const InterfaceAddress& address, int device);

/// A route, rule or address as the kernel reports it.
struct FoundRoute {
  RouteSpec spec;  ///< without device name
  int device = 0;  ///< interface index; 0: none, or several next hops
  uint8_t protocol = 0;
  bool unicast = false;  ///< it leads somewhere
};
struct FoundRule {
  RuleSpec spec;
  uint8_t protocol = 0;
};
struct FoundAddress {
  InterfaceAddress address;
  int device = 0;
  uint8_t protocol = 0;  ///< 0 on kernels before 5.18
};
/// nullopt for other messages.
std::optional<FoundRoute> parseRoute(const nlmsghdr& message);
std::optional<FoundRule> parseRule(const nlmsghdr& message);
std::optional<FoundAddress> parseAddress(const nlmsghdr& message);

}  // namespace braid
