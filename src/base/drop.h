#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/field.h"

namespace braid {

/// Why something was dropped. Every datagram and packet that is not used is counted under exactly
/// one cause. kDrops says what each cause means.
enum class Drop : uint8_t {
  kRuntDatagram,
  kUnknownType,
  kUnknownVersion,
  kUnknownSession,
  kUnknownSubflow,
  kBadSeal,
  kReplay,
  kBadFrame,
  kHandshakeSeal,
  kHandshakeReplay,
  kHandshakeLimit,
  kHandshakeGarbage,
  kBadInnerPacket,
  kNoPeer,
  kPeerDown,
  kForeignSource,
  kSpecialDestination,
  kBetweenPeers,
  kNotBridged,
  kMacTaken,
  kFloodLimit,
  kTooBig,
  kQueueFull,
  kAqm,
  kFlowTableFull,
  kExpired,
  kLostDatagram,
  kHoldOverflow,
  kDuplicate,
  kNoBuffer,
  kBadParity,
  kStrayResponse,
  kForgedAck,
  kRestartNotice,
  kKeyNotice,
  kCount
};
inline constexpr size_t kDropCount = static_cast<size_t>(Drop::kCount);
/// The number of dropped packets and datagrams, by cause.
using DropCounts = std::array<uint64_t, kDropCount>;
inline void countDrop(DropCounts& counts, Drop cause) {
  ++counts[static_cast<size_t>(cause)];
}
inline void addDrops(DropCounts& sum, const DropCounts& more) {
  for (size_t i = 0; i < kDropCount; ++i) sum[i] += more[i];
}

struct DropInfo {
  Drop cause;
  FieldInfo info;
  constexpr DropInfo(Drop c, const char* name, const char* help)
      : cause(c), info{name, FieldUnit::kNone, FieldKind::kCounter, help} {}
};
/// All causes, in the order of the enum.
inline constexpr std::array kDrops = std::to_array<DropInfo>({
    {Drop::kRuntDatagram, "runt_datagram", "shorter than the smallest datagram (27 bytes)"},
    {Drop::kUnknownType, "unknown_type", "first byte neither handshake nor session"},
    {Drop::kUnknownVersion, "unknown_version", "another version of the datagram header"},
    {Drop::kUnknownSession, "unknown_session",
     "no such session; the other end keeps sending for a few seconds after this gateway restarted"},
    {Drop::kUnknownSubflow, "unknown_subflow",
     "more subflows than `max-subflows`, or a number that the initiator did not make"},
    {Drop::kBadSeal, "decrypt_failed",
     "not sealed by the peer, damaged, or of an epoch that began too soon after the last"},
    {Drop::kReplay, "replay", "packet number seen before, or 4096 or more behind"},
    {Drop::kBadFrame, "bad_frame", "sealed by the peer and yet malformed"},
    {Drop::kHandshakeSeal, "handshake_decrypt_failed",
     "a handshake datagram of a sender that does not know this gateway's pin, or damaged"},
    {Drop::kHandshakeReplay, "handshake_replay",
     "a handshake datagram that came before: somebody has overheard it"},
    {Drop::kHandshakeLimit, "handshake_limit",
     "more handshakes, or datagrams of one, than the bounds in docs/protocol.md section 11 allow"},
    {Drop::kHandshakeGarbage, "handshake_unexpected",
     "a handshake datagram of no handshake that is known here; a few after a restart are normal"},
    {Drop::kBadInnerPacket, "bad_inner_packet", "malformed packet from the device or the peer"},
    {Drop::kNoPeer, "no_peer",
     "no peer has this inner destination. A few at start are the kernel's own multicast on the "
     "device"},
    {Drop::kPeerDown, "peer_down", "its peer is not up, nor expected at once"},
    {Drop::kForeignSource, "foreign_source",
     "the peer sent an inner source outside its `prefixes` (TUN: its host gets an ICMP error), or "
     "one of this gateway's own `networks` or addresses"},
    {Drop::kSpecialDestination, "special_destination",
     "the peer sent to an address of a link, of a group, of nobody or of a cloud's metadata, "
     "which no network here names. Multicast of the peer's own services is normal"},
    {Drop::kBetweenPeers, "between_peers",
     "the peer sent to a network or station of another peer, and `between-peers` is off; the "
     "sender of an IP packet gets an ICMP error"},
    {Drop::kNotBridged, "not_bridged",
     "a frame that `device.ethertypes` does not let pass, or to an address that no bridge "
     "forwards. The LAN's own LLDP and STP are normal"},
    {Drop::kMacTaken, "mac_taken",
     "the peer sent from a MAC address that was last heard of at another place"},
    {Drop::kFloodLimit, "flood_limit",
     "more frames for all (broadcast, multicast, unknown address) from one place than "
     "`device.flood-limit`"},
    {Drop::kTooBig, "too_big",
     "larger than the inner MTU and not to be fragmented; the sender of an IP packet gets an "
     "ICMP error"},
    {Drop::kQueueFull, "queue_full",
     "over `queue-limit`, or of the peer with most packets when all queues hold a quarter of the "
     "buffers: dropped from its longest queue"},
    {Drop::kAqm, "aqm",
     "dropped by CoDel: the flow sends more than the paths carry. Normal under load"},
    {Drop::kFlowTableFull, "flow_table_full",
     "a new flow, and none of `max-flows` can be forgotten, or its host has its share of them; "
     "or one of a peer, and there is no memory for its order"},
    {Drop::kExpired, "expired", "TCP packet not delivered within `delivery-timeout`"},
    {Drop::kLostDatagram, "lost_datagram",
     "UDP or other packet lost on a path and not repaired in time"},
    {Drop::kHoldOverflow, "reorder_overflow",
     "not dropped, but delivered out of order: `reorder-limit` reached, a hole of 4096 packets, or "
     "of the peer that holds most when all peers hold a quarter of the buffers, or when memory "
     "is short"},
    {Drop::kDuplicate, "duplicate", "came twice, or more than 1024 packets late"},
    {Drop::kNoBuffer, "no_buffer",
     "the 65536 packet buffers are used up, or, for packets from the device, less than a "
     "sixteenth of them is free"},
    {Drop::kBadParity, "bad_parity",
     "a parity that contradicts its block, or decodes to something else than data"},
    {Drop::kStrayResponse, "stray_path_response",
     "an answer to a path challenge that did not come from where the challenge was sent: it "
     "proves nothing. A peer behind a NAT that gives it another address meanwhile may cause one"},
    {Drop::kForgedAck, "forged_ack",
     "the peer acknowledged a packet that was never sent: its session is closed"},
    {Drop::kRestartNotice, "restart_notice",
     "a restart notice that ends no session of this gateway: a few after the other end restarted "
     "are normal, as it is repeated"},
    {Drop::kKeyNotice, "key_notice",
     "a notice that pre-shared keys differ, about no new session of this gateway"},
});
static_assert(kDrops.size() == kDropCount && [] {
  for (size_t i = 0; i < kDropCount; ++i)
    if (kDrops[i].cause != static_cast<Drop>(i)) return false;
  return true;
}());

/// Stable name for metrics ("decrypt_failed").
constexpr const char* dropName(Drop cause) {
  return kDrops[static_cast<size_t>(cause)].info.name;
}

}  // namespace braid
