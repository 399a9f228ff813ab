#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace braid {

/// A batch of nf_tables messages (nfnetlink). The kernel executes it as a transaction: all or
/// nothing.
class NftBatch {
 public:
  NftBatch();

  /// Begins a message of type NFT_MSG_* with NLM_F_* flags, for tables of family inet (IPv4 and
  /// IPv6).
  void begin(uint16_t type, uint16_t flags);
  /// Ends the batch. Requests an acknowledgment of the last message before the end.
  void end();

  void put(uint16_t type, const std::string& text);
  /// put32() and put64() write numbers in network order.
  void put32(uint16_t type, uint32_t value);
  void put64(uint16_t type, uint64_t value);
  void put(uint16_t type, ByteView bytes);
  /// nest() opens a nested attribute; endNest() with its return value closes it.
  size_t nest(uint16_t type);
  void endNest(size_t place);

  ByteView bytes() const { return bytes_; }
  /// Sequence number of the last message before the end.
  uint32_t lastSequence() const { return sequence_ - 1; }

 private:
  void header(uint16_t type, uint16_t flags, uint8_t family, uint16_t resource);
  void attribute(uint16_t type, const void* data, size_t length);
  nlmsghdr& message() { return *reinterpret_cast<nlmsghdr*>(bytes_.data() + message_); }

  std::vector<uint8_t> bytes_;
  size_t message_ = 0;  ///< offset of the last message
  uint32_t sequence_ = 0;
};

/// Writes a rule into a batch. Each call appends the expressions for one condition or action, in
/// that order. Registers of nf_tables are 16 bytes wide; conditions use register 1.
class NftRule {
 public:
  NftRule(NftBatch& batch, const std::string& table, const std::string& chain);
  ~NftRule();
  NftRule(const NftRule&) = delete;
  NftRule& operator=(const NftRule&) = delete;

  // ---- what a packet must be like

  NftRule& metaIs(uint32_t key, ByteView value);
  NftRule& protocolIs(uint8_t ipProtocol);
  NftRule& familyIs(uint8_t family);  ///< NFPROTO_*
  /// The packet came in by this interface; "": by none, because this host itself sends it.
  NftRule& interfaceIs(const std::string& name);
  NftRule& interfaceIsNot(const std::string& name);
  /// The packet leaves by this interface.
  NftRule& outInterfaceIs(const std::string& name);
  /// The packet leaves by the interface with this index.
  NftRule& outIndexIs(uint32_t index);
  /// The packet leaves by an interface of this group (`ip link set INTERFACE group`).
  NftRule& outGroupIs(uint32_t group);
  /// The packet begins a TCP connection: of FIN, SYN, RST and ACK it has SYN alone.
  NftRule& beginsConnection();
  /// The destination port of TCP or UDP is within the range.
  NftRule& portsAre(uint16_t first, uint16_t last);
  NftRule& sourcePortIs(uint16_t port);
  /// The type of an ICMPv6 message is within the range.
  NftRule& icmpv6TypesAre(uint8_t first, uint8_t last);
  /// The packet has a mark other than 0.
  NftRule& isMarked();
  /// The packet's mark has this value in the bits of `mask`.
  NftRule& markIs(uint32_t value, uint32_t mask);
  /// The mark of the packet's connection (conntrack) has this value in the bits of `mask`.
  NftRule& connectionMarkIs(uint32_t value, uint32_t mask);
  /// The packet has the direction of its connection's first packet, or is a reply.
  NftRule& isReply(bool reply);
  /// The destination's (or source's) first `length` bits are those of `address`, which has 4 or 16
  /// bytes.
  NftRule& destinationIn(ByteView address, unsigned length);
  NftRule& sourceIn(ByteView address, unsigned length);
  NftRule& destinationInSet(const std::string& set, bool v6);
  NftRule& sourceInSet(const std::string& set, bool v6);
  NftRule& destinationIsOfThisHost();
  /// The interface by which the packet came in does not have its destination address.
  NftRule& destinationIsNotOfInputInterface();
  NftRule& sourceIsOfThisHost();
  NftRule& sourceIsNotOfThisHost();
  /// The destination of the packet's connection was translated (conntrack).
  NftRule& destinationWasChanged();
  /// A packet with this destination and mark is routed to this interface.
  NftRule& routedTo(const std::string& interface);
  /// With this value in the bits of `mask` of its mark, the packet would be delivered to this host.
  NftRule& deliveredWith(uint32_t value, uint32_t mask);
  /// The packet belongs to a socket that is open or listens.
  NftRule& hasFullSocket();
  /// This host has a transparent socket for the packet.
  NftRule& hasTransparentSocket();
  /// The packet belongs to a socket that is bound to no address.
  NftRule& hasSocketForAnyAddress();

  // ---- what is done

  /// Delivers the packet to the local socket with this address and port (TPROXY). `address`: 4 or
  /// 16 bytes.
  NftRule& proxyTo(ByteView address, uint16_t port);
  /// Adds the packet's source, its port, its destination, and its port to a set of such keys. The
  /// rule ends here when the set is full.
  NftRule& addEndsTo(const std::string& set, bool v6);
  /// Removes that key if the set has it.
  NftRule& removeEndsFrom(const std::string& set, bool v6);
  /// Gives the bits of `mask` in the packet's mark, or in its connection's, this value. The other
  /// bits stay.
  NftRule& setMark(uint32_t value, uint32_t mask);
  NftRule& setConnectionMark(uint32_t value, uint32_t mask);
  /// Translates the destination (DNAT). `address`: 4 or 16 bytes; `port`: 0 keeps the port.
  NftRule& changeDestination(ByteView address, uint16_t port);
  /// Replaces the source by the address of the interface by which the packet leaves.
  NftRule& masquerade();
  /// `code`: NF_ACCEPT, NF_DROP, NFT_RETURN, or NFT_JUMP with a chain.
  NftRule& verdict(int32_t code, const std::string& chain = {});

 private:
  class Expression;
  NftRule& compare(uint32_t op, ByteView value);
  void loadRoute(uint32_t result);
  NftRule& changeEnds(const std::string& set, bool v6, uint32_t operation);
  NftRule& interface(uint32_t key, uint32_t op, const std::string& name);
  NftRule& addressIn(uint32_t offset, ByteView address, unsigned length);
  NftRule& addressInSet(uint32_t offset, const std::string& set, bool v6);
  NftRule& addressType(uint32_t flags, uint32_t op, uint32_t type);
  void load(uint32_t reg, ByteView value);
  void socket(uint32_t key);
  void payload(uint32_t base, uint32_t offset, uint32_t length);
  void payloadTo(uint32_t reg, uint32_t base, uint32_t offset, uint32_t length);
  void mask(ByteView mask, ByteView flipped = {});
  NftRule& changeMark(const char* expression, uint16_t keyType, uint32_t key, uint16_t from,
                      uint16_t to, uint32_t value, uint32_t mask);

  NftBatch& batch_;
  size_t list_;
};

}  // namespace braid
