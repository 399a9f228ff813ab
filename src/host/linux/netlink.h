#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/network.h"

namespace braid {

/// The routing protocol number (rtm_protocol) that marks routes, rules and addresses as Braid's. It
/// is not assigned in /etc/iproute2/rt_protos.
inline constexpr uint8_t kBraidProtocol = 66;

/// The group of interfaces (`ip link` shows it) in which gateways' devices are, by which other
/// gateways and their packet filters know them. The number is not assigned in /etc/iproute2/group.
inline constexpr uint32_t kDeviceGroup = 66;

/// The errno with which an answer ends. A message of the type NLMSG_ERROR acknowledges a request
/// (0) or refuses it. One of the type NLMSG_DONE ends a dump, which the kernel may have broken off
/// (netlink_dump_done() in af_netlink.c). EBADMSG stands for a message that is too short or holds
/// no errno. nullopt: a message of another type, which ends nothing.
std::optional<int> acknowledgment(const nlmsghdr& message);

/// Builds a netlink request. The buffer is large enough for every request of this project.
class NetlinkRequest {
 public:
  /// `flags`: NLM_F_CREATE and the like.
  NetlinkRequest(uint16_t type, uint16_t flags);
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(buffer_); }

  /// Appends the family header of the request, zeroed, and returns it. Call once, before put().
  template <typename Header>
  Header& body() {
    return *static_cast<Header*>(mnl_nlmsg_put_extra_header(&header(), sizeof(Header)));
  }
  void put(uint16_t type, uint32_t value) { mnl_attr_put_u32(&header(), type, value); }
  void put(uint16_t type, uint8_t value) { mnl_attr_put_u8(&header(), type, value); }
  void put(uint16_t type, const std::string& text) {
    mnl_attr_put_strz(&header(), type, text.c_str());
  }
  /// A range that is one port.
  void putPort(uint16_t type, uint16_t port);
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
  bool unicast = false;  ///< an ordinary route (RTN_UNICAST), not a local or blackhole one
};
struct FoundRule {
  RuleSpec spec;
  uint8_t protocol = 0;
  bool isWhole = true;  ///< it leads to a table, and `spec` holds all its conditions
};
struct FoundAddress {
  InterfaceAddress address;
  int device = 0;
  uint8_t protocol = 0;  ///< 0 on kernels before 5.18
};
/// Parse a message of the kernel; nullopt for messages of other types.
std::optional<FoundRoute> parseRoute(const nlmsghdr& message);
std::optional<FoundRule> parseRule(const nlmsghdr& message);
std::optional<FoundAddress> parseAddress(const nlmsghdr& message);

/// Calls visit(const nlattr*) for each complete attribute from `begin` to `end`.
template <typename Visit>
void forEachAttributeIn(const void* begin, const void* end, Visit&& visit) {
  const auto* at = static_cast<const nlattr*>(begin);
  auto left = [&] {
    return static_cast<int>(static_cast<const char*>(end) - reinterpret_cast<const char*>(at));
  };
  for (; mnl_attr_ok(at, left()); at = mnl_attr_next(at)) visit(at);
}

/// Calls visit(const nlattr*) for each attribute of a message after a family header of
/// `headerBytes` bytes.
template <typename Visit>
void forEachAttribute(const nlmsghdr& message, size_t headerBytes, Visit&& visit) {
  forEachAttributeIn(mnl_nlmsg_get_payload_offset(&message, headerBytes),
                     mnl_nlmsg_get_payload_tail(&message), visit);
}

/// Calls visit(const nlattr*) for each attribute within an attribute.
template <typename Visit>
void forEachNested(const nlattr* nest, Visit&& visit) {
  const auto* payload = static_cast<const char*>(mnl_attr_get_payload(nest));
  forEachAttributeIn(payload, payload + mnl_attr_get_payload_len(nest), visit);
}

/// Calls visit(const nlmsghdr&) for each complete message in `bytes`, which must be aligned for
/// nlmsghdr.
template <typename Visit>
void forEachMessage(std::span<const uint8_t> bytes, Visit&& visit) {
  int left = static_cast<int>(bytes.size());
  // libmnl takes a length of 2^31 or more for a negative number, which passes its check, and would
  // then walk backwards.
  auto isWhole = [&](const nlmsghdr* m) {
    return mnl_nlmsg_ok(m, left) && m->nlmsg_len <= static_cast<uint32_t>(left);
  };
  for (const auto* m = reinterpret_cast<const nlmsghdr*>(bytes.data()); isWhole(m);
       m = mnl_nlmsg_next(m, &left))
    visit(*m);
}

/// A rtnetlink socket (libmnl). The kernel answers requests at once, so calls block only while the
/// kernel works on them.
class NetlinkSocket {
 public:
  using OnMessage = std::function<void(const nlmsghdr&)>;

  /// Size of the receive buffer in bytes, in which the kernel keeps notifications. Large enough
  /// that a burst of route changes does not easily overrun it.
  static constexpr int kReceiveBytes = 1 << 20;

  /// `groups`: RTMGRP_* bits of the notifications to receive. Throws SystemError.
  explicit NetlinkSocket(uint32_t groups, int receiveBytes = kReceiveBytes);

  int fd() const { return mnl_socket_get_fd(socket_.get()); }

  struct Answer {
    int error = 0;  ///< errno; 0: done
    std::string
        message;  ///< the kernel's own words about an error (NLMSGERR_ATTR_MSG); may be empty
  };
  /// Sends a request that the kernel acknowledges, and gives the messages before the acknowledgment
  /// to onMessage. A request that fails for lack of memory is repeated, so a request must be
  /// harmless when executed twice; onMessage then gets earlier messages again.
  Answer request(nlmsghdr& header, const OnMessage& onMessage = {});
  /// Performs one RTM_GET* dump. EINTR: the listed objects changed during the dump, so something
  /// may be missing or outdated.
  Answer dumpOnce(uint16_t type, uint8_t family, const OnMessage& onMessage);
  /// Repeats dumpOnce() up to eight more times until nothing changes during the dump. onMessage
  /// then gets earlier messages again. Throws SystemError.
  void dump(uint16_t type, uint8_t family, const OnMessage& onMessage);

  enum class Heard : uint8_t { kNothing, kMessages, kOverrun };
  /// Reads one batch of notifications without blocking. kOverrun: the kernel had to drop some
  /// (ENOBUFS). It then drops all further ones without an error until everything in the buffer has
  /// been read.
  Heard hear(const OnMessage& onMessage);

 private:
  struct Closer {
    void operator()(mnl_socket* s) const { mnl_socket_close(s); }
  };
  Answer requestOnce(nlmsghdr& header, const OnMessage& onMessage);
  Answer collect(uint32_t sequence, const OnMessage& onMessage);
  void discard();

  std::unique_ptr<mnl_socket, Closer> socket_;
  uint32_t sequence_ = 0;
  bool unfinished_ = false;  // the answer to a request was not read to its end
};

/// The host's policy routing rules of both families. One may be there twice. Throws SystemError.
std::vector<FoundRule> readRules(NetlinkSocket& socket);

}  // namespace braid
