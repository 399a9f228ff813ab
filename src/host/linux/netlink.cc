#include "host/linux/netlink.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "host/system.h"

namespace braid {

namespace {

Address anyAddress(uint8_t family) {
  Address a;
  a.family = family == AF_INET ? Address::Family::kV4 : Address::Family::kV6;
  return a;
}

std::optional<Address> readAddress(uint8_t family, const nlattr* a) {
  Address out = anyAddress(family);
  if (mnl_attr_get_payload_len(a) != out.view().size()) return std::nullopt;
  std::memcpy(out.bytes.data(), mnl_attr_get_payload(a), out.view().size());
  return out;
}

uint32_t readU32(const nlattr* a) {
  return mnl_attr_get_payload_len(a) >= 4 ? mnl_attr_get_u32(a) : 0;
}
uint8_t readU8(const nlattr* a) {
  return mnl_attr_get_payload_len(a) >= 1 ? mnl_attr_get_u8(a) : uint8_t{0};
}

// The first port of a range; those of Braid's rules have only one.
uint16_t readPort(const nlattr* a) {
  fib_rule_port_range range{};
  if (mnl_attr_get_payload_len(a) >= sizeof range)
    std::memcpy(&range, mnl_attr_get_payload(a), sizeof range);
  return range.start;
}

constexpr const char* kLoopback = "lo";
// By RouteSpec::Kind.
constexpr uint8_t kRouteTypes[] = {RTN_UNICAST, RTN_LOCAL, RTN_THROW, RTN_UNREACHABLE};

template <typename Header>
const Header* inetPayload(const nlmsghdr& message, uint16_t type) {
  if (message.nlmsg_type != type || message.nlmsg_len < mnl_nlmsg_size(sizeof(Header)))
    return nullptr;
  const auto* body = static_cast<const Header*>(mnl_nlmsg_get_payload(&message));
  uint8_t family = *static_cast<const uint8_t*>(mnl_nlmsg_get_payload(&message));
  return family == AF_INET || family == AF_INET6 ? body : nullptr;
}

// The header field for the table number. Numbers above 255 are given in an attribute only.
uint8_t shortTable(uint32_t table) {
  return table < 256 ? static_cast<uint8_t>(table) : uint8_t{RT_TABLE_UNSPEC};
}

}  // namespace

void NetlinkRequest::putPort(uint16_t type, uint16_t port) {
  fib_rule_port_range range{port, port};
  mnl_attr_put(&header(), type, sizeof range, &range);
}

NetlinkRequest::NetlinkRequest(uint16_t type, uint16_t flags) : buffer_{} {
  mnl_nlmsg_put_header(buffer_);
  header().nlmsg_type = type;
  header().nlmsg_flags = flags;
}

uint8_t socketFamily(Address::Family family) {
  return family == Address::Family::kV6 ? AF_INET6 : AF_INET;
}

NetlinkRequest routeRequest(uint16_t type, const RouteSpec& route, int device) {
  NetlinkRequest request(type, type == RTM_NEWROUTE ? NLM_F_CREATE | NLM_F_EXCL : 0);
  bool v4 = route.destination.address.isV4();
  auto& body = request.body<rtmsg>();
  body.rtm_family = socketFamily(route.destination.address.family);
  body.rtm_dst_len = static_cast<uint8_t>(route.destination.length);
  body.rtm_table = shortTable(route.table);
  body.rtm_protocol = kBraidProtocol;
  body.rtm_type = kRouteTypes[static_cast<size_t>(route.kind)];
  bool onLink = route.kind == RouteSpec::Kind::kUnicast && route.via.bits() == 0;
  body.rtm_scope = v4 && onLink ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  if (v4 && route.kind == RouteSpec::Kind::kLocal) body.rtm_scope = RT_SCOPE_HOST;
  if (route.onLink) body.rtm_flags = RTNH_F_ONLINK;
  if (route.destination.length > 0) request.put(RTA_DST, route.destination.address);
  request.put(RTA_TABLE, route.table);
  if (route.hasDevice()) request.put(RTA_OIF, static_cast<uint32_t>(device));
  if (route.via.bits()) request.put(RTA_GATEWAY, route.via);
  if (route.metric) request.put(RTA_PRIORITY, route.metric);
  return request;
}

NetlinkRequest ruleRequest(uint16_t type, const RuleSpec& rule) {
  NetlinkRequest request(type, type == RTM_NEWRULE ? NLM_F_CREATE | NLM_F_EXCL : 0);
  auto& body = request.body<fib_rule_hdr>();
  body.family = socketFamily(rule.family);
  body.src_len = static_cast<uint8_t>(rule.from.length);
  body.table = shortTable(rule.table);
  body.action = FR_ACT_TO_TBL;
  request.put(FRA_TABLE, rule.table);
  request.put(FRA_PRIORITY, rule.priority);
  request.put(FRA_PROTOCOL, kBraidProtocol);
  if (!rule.outInterface.empty()) request.put(FRA_OIFNAME, rule.outInterface);
  if (rule.from.length > 0) request.put(FRA_SRC, rule.from.address);
  if (rule.mark) {
    request.put(FRA_FWMARK, rule.mark);
    request.put(FRA_FWMASK, rule.markMask);
  }
  if (rule.inverted) body.flags |= FIB_RULE_INVERT;
  if (rule.localOnly) request.put(FRA_IIFNAME, std::string(kLoopback));
  if (rule.protocol) request.put(FRA_IP_PROTO, rule.protocol);
  if (rule.sourcePort) request.putPort(FRA_SPORT_RANGE, rule.sourcePort);
  if (rule.destinationPort) request.putPort(FRA_DPORT_RANGE, rule.destinationPort);
  if (rule.suppressPrefixLength) request.put(FRA_SUPPRESS_PREFIXLEN, *rule.suppressPrefixLength);
  return request;
}

NetlinkRequest addressRequest(uint16_t type, const InterfaceAddress& address, int device) {
  NetlinkRequest request(type, type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0);
  auto& body = request.body<ifaddrmsg>();
  body.ifa_family = socketFamily(address.address.family);
  body.ifa_prefixlen = static_cast<uint8_t>(address.length);
  body.ifa_index = static_cast<uint32_t>(device);
  // No duplicate address detection: nobody else can have the address on our own device, and waiting
  // for the detection would delay the start.
  if (address.address.isV6()) body.ifa_flags = IFA_F_NODAD;
  request.put(IFA_LOCAL, address.address);
  request.put(IFA_ADDRESS, address.address);
  request.put(IFA_PROTO, kBraidProtocol);
  return request;
}

std::optional<FoundRoute> parseRoute(const nlmsghdr& message) {
  const auto* body = inetPayload<rtmsg>(message, RTM_NEWROUTE);
  if (!body || body->rtm_flags & RTM_F_CLONED) return std::nullopt;
  FoundRoute out;
  out.protocol = body->rtm_protocol;
  out.spec.table = body->rtm_table;
  out.spec.destination = {anyAddress(body->rtm_family), body->rtm_dst_len};
  out.spec.onLink = (body->rtm_flags & RTNH_F_ONLINK) != 0;
  auto kind = std::ranges::find(kRouteTypes, body->rtm_type);
  if (kind != std::end(kRouteTypes))
    out.spec.kind = static_cast<RouteSpec::Kind>(kind - std::begin(kRouteTypes));
  out.unicast = body->rtm_type == RTN_UNICAST;
  forEachAttribute(message, sizeof *body, [&](const nlattr* a) {
    switch (mnl_attr_get_type(a)) {
      case RTA_DST:
        out.spec.destination.address =
            readAddress(body->rtm_family, a).value_or(out.spec.destination.address);
        break;
      case RTA_GATEWAY:
        out.spec.via = readAddress(body->rtm_family, a).value_or(Address{});
        break;
      case RTA_OIF:
        out.device = static_cast<int>(readU32(a));
        break;
      case RTA_TABLE:
        out.spec.table = readU32(a);
        break;
      case RTA_PRIORITY:
        out.spec.metric = readU32(a);
        break;
    }
  });
  return out;
}

std::optional<FoundRule> parseRule(const nlmsghdr& message) {
  const auto* body = inetPayload<fib_rule_hdr>(message, RTM_NEWRULE);
  if (!body) return std::nullopt;
  FoundRule out;
  out.spec.family = anyAddress(body->family).family;
  out.spec.table = body->table;
  out.spec.inverted = (body->flags & FIB_RULE_INVERT) != 0;
  out.isWhole = body->action == FR_ACT_TO_TBL && body->dst_len == 0 && body->tos == 0;
  forEachAttribute(message, sizeof *body, [&](const nlattr* a) {
    switch (mnl_attr_get_type(a)) {
      case FRA_TABLE:
        out.spec.table = readU32(a);
        break;
      case FRA_PRIORITY:
        out.spec.priority = readU32(a);
        break;
      case FRA_FWMARK:
        out.spec.mark = readU32(a);
        break;
      case FRA_FWMASK:
        out.spec.markMask = readU32(a);
        break;
      case FRA_IIFNAME:
        out.spec.localOnly = mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0 &&
                             std::string_view(mnl_attr_get_str(a)) == kLoopback;
        out.isWhole &= out.spec.localOnly;
        break;
      case FRA_UID_RANGE:
      case FRA_L3MDEV:
      case FRA_TUN_ID:
        out.isWhole = false;
        break;
      case FRA_IP_PROTO:
        out.spec.protocol = readU8(a);
        break;
      case FRA_SPORT_RANGE:
        out.spec.sourcePort = readPort(a);
        break;
      case FRA_DPORT_RANGE:
        out.spec.destinationPort = readPort(a);
        break;
      case FRA_PROTOCOL:
        out.protocol = readU8(a);
        break;
      case FRA_OIFNAME:
        if (mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
          out.spec.outInterface = mnl_attr_get_str(a);
        break;
      case FRA_SRC:
        if (auto from = readAddress(body->family, a)) out.spec.from = {*from, body->src_len};
        break;
      case FRA_SUPPRESS_PREFIXLEN:
        if (readU32(a) != UINT32_MAX) out.spec.suppressPrefixLength = readU32(a);
        break;
    }
  });
  return out;
}

std::optional<FoundAddress> parseAddress(const nlmsghdr& message) {
  const auto* body = inetPayload<ifaddrmsg>(message, RTM_NEWADDR);
  if (!body) return std::nullopt;
  FoundAddress out;
  out.device = static_cast<int>(body->ifa_index);
  out.address.length = body->ifa_prefixlen;
  std::optional<Address> local, any;
  forEachAttribute(message, sizeof *body, [&](const nlattr* a) {
    if (mnl_attr_get_type(a) == IFA_LOCAL) local = readAddress(body->ifa_family, a);
    if (mnl_attr_get_type(a) == IFA_ADDRESS) any = readAddress(body->ifa_family, a);
    if (mnl_attr_get_type(a) == IFA_PROTO) out.protocol = readU8(a);
  });
  if (!local) local = any;
  if (!local) return std::nullopt;
  out.address.address = *local;
  return out;
}

namespace {

constexpr size_t kBufferBytes = 32768;  // the most that the kernel returns per read of a dump
// The kernel answers within the system call that sends the request. The timeout ends the wait when
// no answer comes.
constexpr timeval kAnswerTimeout{5, 0};

constexpr int kRequestTries = 3;

// Whether the kernel had no memory for the request or for its answer. It is then unknown whether
// the request was executed.
bool memoryWasShort(int error) {
  return error == ENOBUFS || error == ENOMEM;
}

// The text of an error message with NLM_F_ACK_TLVS (NETLINK_EXT_ACK). With NETLINK_CAP_ACK the
// message does not contain the request.
std::string extendedText(const nlmsghdr& header) {
  if (!(header.nlmsg_flags & NLM_F_ACK_TLVS)) return {};
  std::string text;
  forEachAttribute(header, sizeof(nlmsgerr), [&](const nlattr* a) {
    if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
      text = mnl_attr_get_str(a);
  });
  return text;
}

}  // namespace

std::optional<int> acknowledgment(const nlmsghdr& message) {
  bool isDone = message.nlmsg_type == NLMSG_DONE;
  if (!isDone && message.nlmsg_type != NLMSG_ERROR) return std::nullopt;
  if (message.nlmsg_len < mnl_nlmsg_size(isDone ? sizeof(int) : sizeof(nlmsgerr))) return EBADMSG;
  int code;  // an nlmsgerr begins with it
  std::memcpy(&code, mnl_nlmsg_get_payload(&message), sizeof code);
  constexpr int kMostErrno = 4095;  // MAX_ERRNO of the kernel
  return code > 0 || code < -kMostErrno ? EBADMSG : -code;
}

NetlinkSocket::NetlinkSocket(uint32_t groups, int receiveBytes)
    : socket_(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC)) {
  if (!socket_)
    throw SystemError(errno, std::string("cannot open a netlink socket: ") + std::strerror(errno));
  if (mnl_socket_bind(socket_.get(), groups, MNL_SOCKET_AUTOPID) < 0) {
    throw SystemError(errno, std::string("cannot bind a netlink socket: ") + std::strerror(errno));
  }
  int on = 1;  // optional: without these options the answers are only longer
  mnl_socket_setsockopt(socket_.get(), NETLINK_EXT_ACK, &on, sizeof on);
  mnl_socket_setsockopt(socket_.get(), NETLINK_CAP_ACK, &on, sizeof on);
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof kAnswerTimeout);
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &receiveBytes, sizeof receiveBytes);
}

NetlinkSocket::Answer NetlinkSocket::request(nlmsghdr& header, const OnMessage& onMessage) {
  Answer answer;
  for (int tries = 0; tries < kRequestTries; ++tries) {
    answer = requestOnce(header, onMessage);
    if (!memoryWasShort(answer.error)) break;
  }
  return answer;
}

NetlinkSocket::Answer NetlinkSocket::requestOnce(nlmsghdr& header, const OnMessage& onMessage) {
  header.nlmsg_flags |= NLM_F_REQUEST;
  // NLM_F_DUMP consists of two bits, and NLM_F_EXCL is one of them, so both must be tested.
  if ((header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) header.nlmsg_flags |= NLM_F_ACK;
  header.nlmsg_seq = ++sequence_;
  if (unfinished_) discard();
  ssize_t sent;
  do sent = mnl_socket_sendto(socket_.get(), &header, header.nlmsg_len);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return {errno, {}};
  return collect(sequence_, onMessage);
}

// Discards an unread answer, because the kernel accepts no further dump until the last one was
// read.
void NetlinkSocket::discard() {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  ssize_t got;
  do got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  while (got >= 0 || errno == EINTR || errno == ENOBUFS);
}

NetlinkSocket::Answer NetlinkSocket::collect(uint32_t sequence, const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  bool interrupted = false;
  std::optional<Answer> answer;
  unfinished_ = true;
  while (!answer) {
    ssize_t got = mnl_socket_recvfrom(socket_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {errno, {}};
    forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
      if (answer || m.nlmsg_seq != sequence) return;
      interrupted |= (m.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (std::optional<int> error = acknowledgment(m)) {
        bool isChanged = *error == 0 && interrupted;
        answer = isChanged ? Answer{EINTR, "changed while it was read"}
                           : Answer{*error, m.nlmsg_type == NLMSG_ERROR ? extendedText(m) : ""};
      } else if (onMessage) {
        onMessage(m);
      }
    });
  }
  unfinished_ = false;
  return *answer;
}

NetlinkSocket::Answer NetlinkSocket::dumpOnce(uint16_t type, uint8_t family,
                                              const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[256];
  nlmsghdr* header = mnl_nlmsg_put_header(buffer);
  header->nlmsg_type = type;
  header->nlmsg_flags = NLM_F_DUMP;
  // The family is the first field of each request header. The largest header serves for all.
  auto* body = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(header, sizeof(ifinfomsg)));
  body->ifi_family = family;
  return requestOnce(*header, onMessage);
}

void NetlinkSocket::dump(uint16_t type, uint8_t family, const OnMessage& onMessage) {
  for (int attempt = 0;; ++attempt) {
    Answer answer = dumpOnce(type, family, onMessage);
    if (answer.error == 0) return;
    if ((answer.error == EINTR || memoryWasShort(answer.error)) && attempt < 8) continue;
    throw SystemError(answer.error,
                      "netlink dump failed: " + std::string(std::strerror(answer.error)));
  }
}

NetlinkSocket::Heard NetlinkSocket::hear(const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  ssize_t got;
  do got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno == ENOBUFS ? Heard::kOverrun : Heard::kNothing;
  if (static_cast<size_t>(got) > sizeof buffer) return Heard::kOverrun;  // the buffer was too small
  forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
    if (m.nlmsg_type >= NLMSG_MIN_TYPE) onMessage(m);
  });
  return Heard::kMessages;
}

std::vector<FoundRule> readRules(NetlinkSocket& socket) {
  std::vector<FoundRule> out;
  auto look = [&](const nlmsghdr& m) {
    if (auto found = parseRule(m)) out.push_back(std::move(*found));
  };
  for (uint8_t family : {AF_INET, AF_INET6}) {
    try {
      socket.dump(RTM_GETRULE, family, look);
    } catch (const SystemError& e) {
      if (e.code() != EOPNOTSUPP && e.code() != EAFNOSUPPORT)
        throw;  // a machine without the family
    }
  }
  return out;
}

}  // namespace braid
