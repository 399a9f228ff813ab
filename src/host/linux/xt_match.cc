#include "host/linux/xt_match.h"

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <linux/netfilter/xt_addrtype.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_state.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace braid {

namespace {

// NF_CT_STATE_BIT(IP_CT_NEW) and (IP_CT_ESTABLISHED).
constexpr uint32_t kStateNew = 8, kStateEstablished = 2;
constexpr uint8_t kXtTcpFlags = 0x3f;

NftAnswer answerOf(bool yes) {
  return yes ? NftAnswer::kYes : NftAnswer::kNo;
}

template <typename Info>
std::optional<Info> xtInfo(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(Info)) return std::nullopt;
  Info out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

// `ports`: the first and last destination port; `sources`: the source ports, which are unknown.
NftAnswer portsMatch(const NftPacket& packet, const uint16_t* sources, const uint16_t* ports,
                     bool isSourceInverted, bool isInverted) {
  if (sources[0] != 0 || sources[1] != 0xffff || isSourceInverted) return NftAnswer::kMaybe;
  bool inside = ports[0] <= packet.port && packet.port <= ports[1];
  return answerOf(inside != isInverted);
}

NftAnswer udpMatch(std::span<const uint8_t> info, const NftPacket& packet) {
  std::optional<xt_udp> udp = xtInfo<xt_udp>(info);
  if (!udp) return NftAnswer::kMaybe;
  if (packet.protocol != IPPROTO_UDP) return NftAnswer::kNo;
  return portsMatch(packet, udp->spts, udp->dpts, udp->invflags & XT_UDP_INV_SRCPT,
                    udp->invflags & XT_UDP_INV_DSTPT);
}

NftAnswer tcpMatch(std::span<const uint8_t> info, const NftPacket& packet) {
  std::optional<xt_tcp> tcp = xtInfo<xt_tcp>(info);
  if (!tcp || tcp->option != 0) return NftAnswer::kMaybe;
  if (packet.protocol != IPPROTO_TCP) return NftAnswer::kNo;
  bool flagged = (tcpFlagsOf(packet) & tcp->flg_mask & kXtTcpFlags) == tcp->flg_cmp;
  if (flagged == ((tcp->invflags & XT_TCP_INV_FLAGS) != 0)) return NftAnswer::kNo;
  return portsMatch(packet, tcp->spts, tcp->dpts, tcp->invflags & XT_TCP_INV_SRCPT,
                    tcp->invflags & XT_TCP_INV_DSTPT);
}

NftAnswer multiportMatch(std::span<const uint8_t> info, const NftPacket& packet) {
  std::optional<xt_multiport_v1> ports = xtInfo<xt_multiport_v1>(info);
  if (!ports || ports->flags != XT_MULTIPORT_DESTINATION || ports->count > XT_MULTI_PORTS)
    return NftAnswer::kMaybe;
  bool found = false;
  for (size_t i = 0; i < ports->count; ++i) {
    size_t last = ports->pflags[i] != 0 && i + 1 < ports->count ? i + 1 : i;
    found |= ports->ports[i] <= packet.port && packet.port <= ports->ports[last];
    i = last;
  }
  return answerOf(found != (ports->invert != 0));
}

NftAnswer conntrackMatch(uint32_t revision, std::span<const uint8_t> info,
                         const NftPacket& packet) {
  uint32_t flags = 0, inverted = 0, states = 0;
  if (auto at = xtInfo<xt_conntrack_mtinfo3>(info); at && revision == 3) {
    flags = at->match_flags, inverted = at->invert_flags, states = at->state_mask;
  } else if (auto two = xtInfo<xt_conntrack_mtinfo2>(info); two && revision == 2) {
    flags = two->match_flags, inverted = two->invert_flags, states = two->state_mask;
  } else {
    return NftAnswer::kMaybe;
  }
  if ((flags & ~uint32_t{XT_CONNTRACK_STATE | XT_CONNTRACK_STATE_ALIAS}) != 0 ||
      (flags & XT_CONNTRACK_STATE) == 0)
    return NftAnswer::kMaybe;
  uint32_t own = connectionState(packet);
  if (packet.isTranslated) own |= XT_CONNTRACK_STATE_DNAT;
  return answerOf(((states & own) != 0) != ((inverted & XT_CONNTRACK_STATE) != 0));
}

// The source's type is that of a host somewhere else.
NftAnswer addressTypeMatch(uint32_t revision, std::span<const uint8_t> info,
                           const NftPacket& packet) {
  std::optional<xt_addrtype_info_v1> type = xtInfo<xt_addrtype_info_v1>(info);
  constexpr uint32_t kLimited = XT_ADDRTYPE_LIMIT_IFACE_IN | XT_ADDRTYPE_LIMIT_IFACE_OUT;
  if (!type || revision != 1 || (type->flags & kLimited) != 0) return NftAnswer::kMaybe;
  bool isLocal = packet.hook == NftPacket::Hook::kInput && !packet.isForeign;
  uint16_t own = isLocal ? XT_ADDRTYPE_LOCAL : XT_ADDRTYPE_UNICAST;
  if (type->dest != 0 &&
      ((type->dest & own) != 0) == ((type->flags & XT_ADDRTYPE_INVERT_DEST) != 0))
    return NftAnswer::kNo;
  return answerOf(type->source == 0 || ((type->source & XT_ADDRTYPE_UNICAST) != 0) !=
                                           ((type->flags & XT_ADDRTYPE_INVERT_SOURCE) != 0));
}

bool isOneOf(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

uint32_t connectionState(const NftPacket& packet) {
  return packet.isAnswer ? kStateEstablished : kStateNew;
}

uint8_t tcpFlagsOf(const NftPacket& packet) {
  return packet.isAnswer ? 0x10 : 0x02;  // ACK, SYN: RFC 9293 section 3.1
}

NftAnswer xtMatch(const std::string& name, uint32_t revision, std::span<const uint8_t> info,
                  const NftPacket& packet) {
  if (name == "comment") return NftAnswer::kYes;
  if (isOneOf(name, {"icmp", "icmp6", "esp", "ah", "sctp", "dccp"})) return NftAnswer::kNo;
  if (name == "udp") return udpMatch(info, packet);
  if (name == "tcp") return tcpMatch(info, packet);
  if (name == "multiport") return multiportMatch(info, packet);
  if (name == "conntrack") return conntrackMatch(revision, info, packet);
  if (name == "addrtype") return addressTypeMatch(revision, info, packet);
  if (name == "state") {
    std::optional<xt_state_info> state = xtInfo<xt_state_info>(info);
    return state ? answerOf((state->statemask & connectionState(packet)) != 0) : NftAnswer::kMaybe;
  }
  if (name == "mark") {
    std::optional<xt_mark_mtinfo1> mark = xtInfo<xt_mark_mtinfo1>(info);
    if (!mark) return NftAnswer::kMaybe;
    return answerOf(((packet.mark & mark->mask) == mark->mark) != (mark->invert != 0));
  }
  return NftAnswer::kMaybe;
}

XtTarget xtTarget(const std::string& name) {
  if (name == "REJECT") return XtTarget::kDrop;
  return isOneOf(name, {"LOG", "NFLOG", "MARK", "CONNMARK", "TCPMSS", "TRACE", "CLASSIFY", "AUDIT",
                        "DSCP", "TOS", "HL", "TTL", "CHECKSUM", "SECMARK", "CONNSECMARK", "SET"})
             ? XtTarget::kContinue
             : XtTarget::kUnknown;
}

}  // namespace braid
