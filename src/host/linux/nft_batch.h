#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace braid {

/// A batch of nf_tables messages (nfnetlink): the kernel does all of it or nothing.
class NftBatch {
 public:
  NftBatch();

  /// Begins a message: NFT_MSG_*, with NLM_F_* flags, for tables of all IP families.
  void begin(uint16_t type, uint16_t flags);
  /// Ends the batch. Asks for an answer to the last message before.
  void end();

  void put(uint16_t type, const std::string& text);
  /// Numbers are in network order.
  void put32(uint16_t type, uint32_t value);
  void put64(uint16_t type, uint64_t value);
  void put(uint16_t type, ByteView bytes);
  /// A nested attribute is open from nest() to endNest() with what it gave.
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
  size_t message_ = 0;  ///< where the last message begins
  uint32_t sequence_ = 0;
};

/// A rule that is being written: its expressions, in their order. Registers are 16 bytes wide; register 1 is used.
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
  /// The interface that the packet came by; "": none, a packet of this host.
  NftRule& interfaceIs(const std::string& name);
  NftRule& interfaceIsNot(const std::string& name);
  /// The interface that the packet leaves by.
  NftRule& outInterfaceIs(const std::string& name);
  /// TCP flags: those of the mask are these.
  NftRule& tcpFlagsAre(uint8_t mask, uint8_t flags);
  /// Destination port of TCP or UDP.
  NftRule& portsAre(uint16_t first, uint16_t last);
  /// The destination's first `length` bits; `address`: 4 or 16 bytes.
  NftRule& destinationIn(ByteView address, unsigned length);
  NftRule& sourceIn(ByteView address, unsigned length);
  NftRule& destinationInSet(const std::string& set, bool v6);
  NftRule& sourceInSet(const std::string& set, bool v6);
  NftRule& destinationIsOfThisHost();
  NftRule& sourceIsNotOfThisHost();
  /// The destination of its connection has been translated (conntrack).
  NftRule& destinationWasChanged();
  /// The routes lead it to this interface.
  NftRule& routedTo(const std::string& interface);
  /// There is a transparent socket of this host for it.
  NftRule& hasTransparentSocket();

  // ---- what is done

  /// `address`: 4 or 16 bytes.
  NftRule& proxyTo(ByteView address, uint16_t port);
  NftRule& setMark(uint32_t mark);
  /// `address`: 4 or 16 bytes; `port`: 0: as it is.
  NftRule& changeDestination(ByteView address, uint16_t port);
  /// The source becomes the address of the interface that the packet leaves by.
  NftRule& masquerade();
  /// NF_ACCEPT, NFT_RETURN, NFT_JUMP; the latter with a chain.
  NftRule& verdict(int32_t code, const std::string& chain = {});

 private:
  class Expression;
  void compare(uint32_t op, ByteView value);
  NftRule& interface(uint32_t key, uint32_t op, const std::string& name);
  NftRule& addressIn(uint32_t offset, ByteView address, unsigned length);
  NftRule& addressInSet(uint32_t offset, const std::string& set, bool v6);
  NftRule& addressType(uint32_t flags, uint32_t op, uint32_t type);
  void load(uint32_t reg, ByteView value);
  void payload(uint32_t base, uint32_t offset, uint32_t length);
  void mask(ByteView mask);

  NftBatch& batch_;
  size_t list_;
};

}  // namespace braid
