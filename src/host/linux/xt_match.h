#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "host/linux/nft_firewall.h"

namespace braid {

/// The answer to the question whether something in a packet filter applies to a packet.
enum class NftAnswer : uint8_t { kNo, kMaybe, kYes };

/// Whether a match of iptables ("-m conntrack --ctstate NEW"), as iptables-nft hands it to the
/// kernel, applies to the packet. kMaybe for matches that are not known here.
NftAnswer xtMatch(const std::string& name, uint32_t revision, std::span<const uint8_t> info,
                  const NftPacket& packet);

/// What a target of iptables ("-j REJECT") does with a packet.
enum class XtTarget : uint8_t { kDrop, kContinue, kUnknown };
XtTarget xtTarget(const std::string& name);

/// State of the packet's connection, as conntrack numbers it (NF_CT_STATE_BIT).
uint32_t connectionState(const NftPacket& packet);
/// The flags of a TCP packet: a SYN, or an ACK of an established connection.
uint8_t tcpFlagsOf(const NftPacket& packet);

}  // namespace braid
