#include "host/linux/nft_batch.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace braid {

namespace {

constexpr uint32_t kTcpPorts = 2;   // offset of the destination port (RFC 9293 section 3.1)
constexpr uint32_t kTcpFlags = 13;  // offset of the flags
constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kAck = 0x10;  // RFC 9293 section 3.1
constexpr uint32_t kV4Source = 12, kV6Source = 8;                      // RFC 791, RFC 8200
constexpr uint32_t kV4Destination = 16, kV6Destination = 24;
constexpr uint8_t kYes = 1;

std::array<uint8_t, 2> network16(uint16_t v) {
  return {static_cast<uint8_t>(v >> 8), static_cast<uint8_t>(v)};
}

// An interface name as the kernel keeps it in registers.
std::array<uint8_t, IFNAMSIZ> padded(const std::string& name) {
  std::array<uint8_t, IFNAMSIZ> out{};
  std::memcpy(out.data(), name.data(), std::min(name.size(), out.size() - 1));
  return out;
}

template <typename T>
ByteView bytesOf(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

}  // namespace

NftBatch::NftBatch() {
  header(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, htons(NFNL_SUBSYS_NFTABLES));
}

void NftBatch::header(uint16_t type, uint16_t flags, uint8_t family, uint16_t resource) {
  message_ = bytes_.size();
  bytes_.resize(message_ + NLMSG_ALIGN(sizeof(nlmsghdr)) + NLMSG_ALIGN(sizeof(nfgenmsg)));
  nlmsghdr& h = message();
  h.nlmsg_len = static_cast<uint32_t>(bytes_.size() - message_);
  h.nlmsg_type = type;
  h.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  h.nlmsg_seq = sequence_++;
  nfgenmsg body{};
  body.nfgen_family = family;
  body.version = NFNETLINK_V0;
  body.res_id = resource;
  std::memcpy(bytes_.data() + message_ + NLMSG_HDRLEN, &body, sizeof body);
}

void NftBatch::begin(uint16_t type, uint16_t flags) {
  header(static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags, NFPROTO_INET, 0);
}

void NftBatch::end() {
  message().nlmsg_flags |= NLM_F_ACK;
  header(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, htons(NFNL_SUBSYS_NFTABLES));
  --sequence_;  // the end message is not answered
}

void NftBatch::attribute(uint16_t type, const void* data, size_t length) {
  size_t at = bytes_.size();
  nlattr head{static_cast<uint16_t>(sizeof head + length), type};
  bytes_.resize(at + NLA_ALIGN(head.nla_len));
  std::memcpy(bytes_.data() + at, &head, sizeof head);
  if (length > 0) std::memcpy(bytes_.data() + at + sizeof head, data, length);
  message().nlmsg_len = static_cast<uint32_t>(bytes_.size() - message_);
}

void NftBatch::put(uint16_t type, const std::string& text) {
  attribute(type, text.c_str(), text.size() + 1);
}
void NftBatch::put(uint16_t type, ByteView bytes) {
  attribute(type, bytes.data(), bytes.size());
}
void NftBatch::put32(uint16_t type, uint32_t value) {
  value = htonl(value);
  attribute(type, &value, sizeof value);
}
void NftBatch::put64(uint16_t type, uint64_t value) {
  std::array<uint8_t, 8> bytes;
  store64(bytes.data(), value);
  attribute(type, bytes.data(), bytes.size());
}

size_t NftBatch::nest(uint16_t type) {
  size_t at = bytes_.size();
  attribute(static_cast<uint16_t>(type | NLA_F_NESTED), nullptr, 0);
  return at;
}

void NftBatch::endNest(size_t place) {
  auto length = static_cast<uint16_t>(bytes_.size() - place);
  std::memcpy(bytes_.data() + place + offsetof(nlattr, nla_len), &length, sizeof length);
}

// ---- rules

/// One expression of a rule's list: its name, and its own attributes.
class NftRule::Expression {
 public:
  Expression(NftBatch& batch, const char* name)
      : batch_(batch), element_(batch.nest(NFTA_LIST_ELEM)) {
    batch.put(NFTA_EXPR_NAME, std::string(name));
    data_ = batch.nest(NFTA_EXPR_DATA);
  }
  ~Expression() {
    batch_.endNest(data_);
    batch_.endNest(element_);
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  Expression& number(uint16_t type, uint32_t value) {
    batch_.put32(type, value);
    return *this;
  }
  Expression& text(uint16_t type, const std::string& value) {
    batch_.put(type, value);
    return *this;
  }
  Expression& value(uint16_t type, ByteView bytes) {
    size_t data = batch_.nest(type);
    batch_.put(NFTA_DATA_VALUE, bytes);
    batch_.endNest(data);
    return *this;
  }

 private:
  NftBatch& batch_;
  size_t element_, data_ = 0;
};

NftRule::NftRule(NftBatch& batch, const std::string& table, const std::string& chain)
    : batch_(batch) {
  batch.begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  batch.put(NFTA_RULE_TABLE, table);
  batch.put(NFTA_RULE_CHAIN, chain);
  list_ = batch.nest(NFTA_RULE_EXPRESSIONS);
}

NftRule::~NftRule() {
  batch_.endNest(list_);
}

NftRule& NftRule::compare(uint32_t op, ByteView value) {
  Expression(batch_, "cmp")
      .number(NFTA_CMP_SREG, NFT_REG_1)
      .number(NFTA_CMP_OP, op)
      .value(NFTA_CMP_DATA, value);
  return *this;
}

void NftRule::load(uint32_t reg, ByteView value) {
  Expression(batch_, "immediate")
      .number(NFTA_IMMEDIATE_DREG, reg)
      .value(NFTA_IMMEDIATE_DATA, value);
}

void NftRule::payload(uint32_t base, uint32_t offset, uint32_t length) {
  payloadTo(NFT_REG_1, base, offset, length);
}

void NftRule::payloadTo(uint32_t reg, uint32_t base, uint32_t offset, uint32_t length) {
  Expression(batch_, "payload")
      .number(NFTA_PAYLOAD_DREG, reg)
      .number(NFTA_PAYLOAD_BASE, base)
      .number(NFTA_PAYLOAD_OFFSET, offset)
      .number(NFTA_PAYLOAD_LEN, length);
}

// The result is (register & mask) ^ flipped.
void NftRule::mask(ByteView mask, ByteView flipped) {
  std::array<uint8_t, 16> zeros{};
  if (flipped.empty()) flipped = ByteView(zeros).first(mask.size());
  Expression(batch_, "bitwise")
      .number(NFTA_BITWISE_SREG, NFT_REG_1)
      .number(NFTA_BITWISE_DREG, NFT_REG_1)
      .number(NFTA_BITWISE_LEN, static_cast<uint32_t>(mask.size()))
      .value(NFTA_BITWISE_MASK, mask)
      .value(NFTA_BITWISE_XOR, flipped);
}

NftRule& NftRule::metaIs(uint32_t key, ByteView value) {
  Expression(batch_, "meta").number(NFTA_META_DREG, NFT_REG_1).number(NFTA_META_KEY, key);
  return compare(NFT_CMP_EQ, value);
}
NftRule& NftRule::interface(uint32_t key, uint32_t op, const std::string& name) {
  Expression(batch_, "meta").number(NFTA_META_DREG, NFT_REG_1).number(NFTA_META_KEY, key);
  return compare(op, padded(name));
}
NftRule& NftRule::protocolIs(uint8_t ipProtocol) {
  return metaIs(NFT_META_L4PROTO, bytesOf(ipProtocol));
}
NftRule& NftRule::familyIs(uint8_t family) {
  return metaIs(NFT_META_NFPROTO, bytesOf(family));
}
NftRule& NftRule::interfaceIs(const std::string& name) {
  return interface(NFT_META_IIFNAME, NFT_CMP_EQ, name);
}
NftRule& NftRule::interfaceIsNot(const std::string& name) {
  return interface(NFT_META_IIFNAME, NFT_CMP_NEQ, name);
}
NftRule& NftRule::outInterfaceIs(const std::string& name) {
  return interface(NFT_META_OIFNAME, NFT_CMP_EQ, name);
}
NftRule& NftRule::outIndexIs(uint32_t index) {
  return metaIs(NFT_META_OIF, bytesOf(index));
}
NftRule& NftRule::outGroupIs(uint32_t group) {
  return metaIs(NFT_META_OIFGROUP, bytesOf(group));
}

NftRule& NftRule::beginsConnection() {
  protocolIs(IPPROTO_TCP);
  payload(NFT_PAYLOAD_TRANSPORT_HEADER, kTcpFlags, 1);
  uint8_t looked = kFin | kSyn | kRst | kAck;
  mask(bytesOf(looked));
  return compare(NFT_CMP_EQ, bytesOf(kSyn));
}

NftRule& NftRule::portsAre(uint16_t first, uint16_t last) {
  payload(NFT_PAYLOAD_TRANSPORT_HEADER, kTcpPorts, 2);
  if (first == last) {
    compare(NFT_CMP_EQ, network16(first));
  } else {
    compare(NFT_CMP_GTE, network16(first));
    compare(NFT_CMP_LTE, network16(last));
  }
  return *this;
}

NftRule& NftRule::sourcePortIs(uint16_t port) {
  payload(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2);
  return compare(NFT_CMP_EQ, network16(port));
}

NftRule& NftRule::icmpv6TypesAre(uint8_t first, uint8_t last) {
  protocolIs(IPPROTO_ICMPV6);
  payload(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
  compare(NFT_CMP_GTE, bytesOf(first));
  return compare(NFT_CMP_LTE, bytesOf(last));
}

NftRule& NftRule::isMarked() {
  Expression(batch_, "meta").number(NFTA_META_DREG, NFT_REG_1).number(NFTA_META_KEY, NFT_META_MARK);
  uint32_t none = 0;
  return compare(NFT_CMP_NEQ, bytesOf(none));
}

// Marks are in host byte order.
NftRule& NftRule::markIs(uint32_t value, uint32_t mask) {
  Expression(batch_, "meta").number(NFTA_META_DREG, NFT_REG_1).number(NFTA_META_KEY, NFT_META_MARK);
  this->mask(bytesOf(mask));
  return compare(NFT_CMP_EQ, bytesOf(value));
}

NftRule& NftRule::connectionMarkIs(uint32_t value, uint32_t mask) {
  Expression(batch_, "ct").number(NFTA_CT_DREG, NFT_REG_1).number(NFTA_CT_KEY, NFT_CT_MARK);
  this->mask(bytesOf(mask));
  return compare(NFT_CMP_EQ, bytesOf(value));
}

NftRule& NftRule::isReply(bool reply) {
  uint8_t direction = reply ? IP_CT_DIR_REPLY : IP_CT_DIR_ORIGINAL;
  Expression(batch_, "ct").number(NFTA_CT_DREG, NFT_REG_1).number(NFTA_CT_KEY, NFT_CT_DIRECTION);
  return compare(NFT_CMP_EQ, bytesOf(direction));
}

NftRule& NftRule::addressIn(uint32_t offset, ByteView address, unsigned length) {
  familyIs(address.size() == 16 ? NFPROTO_IPV6 : NFPROTO_IPV4);
  if (length == 0) return *this;
  std::array<uint8_t, 16> bits{};
  for (unsigned i = 0; i < length; ++i)
    bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 0x80 >> i % 8);
  payload(NFT_PAYLOAD_NETWORK_HEADER, offset, static_cast<uint32_t>(address.size()));
  mask(ByteView(bits).first(address.size()));
  return compare(NFT_CMP_EQ, address);
}

NftRule& NftRule::destinationIn(ByteView address, unsigned length) {
  return addressIn(address.size() == 16 ? kV6Destination : kV4Destination, address, length);
}
NftRule& NftRule::sourceIn(ByteView address, unsigned length) {
  return addressIn(address.size() == 16 ? kV6Source : kV4Source, address, length);
}

NftRule& NftRule::addressInSet(uint32_t offset, const std::string& set, bool v6) {
  payload(NFT_PAYLOAD_NETWORK_HEADER, offset, v6 ? 16 : 4);
  Expression(batch_, "lookup").text(NFTA_LOOKUP_SET, set).number(NFTA_LOOKUP_SREG, NFT_REG_1);
  return *this;
}

NftRule& NftRule::destinationInSet(const std::string& set, bool v6) {
  return addressInSet(v6 ? kV6Destination : kV4Destination, set, v6);
}
NftRule& NftRule::sourceInSet(const std::string& set, bool v6) {
  return addressInSet(v6 ? kV6Source : kV4Source, set, v6);
}

// Compares the type that the routing tables give the address (RTN_LOCAL and so on).
NftRule& NftRule::addressType(uint32_t flags, uint32_t op, uint32_t type) {
  Expression(batch_, "fib")
      .number(NFTA_FIB_DREG, NFT_REG_1)
      .number(NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE)
      .number(NFTA_FIB_FLAGS, flags);
  return compare(op, bytesOf(type));
}

NftRule& NftRule::destinationIsOfThisHost() {
  return addressType(NFTA_FIB_F_DADDR, NFT_CMP_EQ, RTN_LOCAL);
}
NftRule& NftRule::destinationIsNotOfInputInterface() {
  return addressType(NFTA_FIB_F_DADDR | NFTA_FIB_F_IIF, NFT_CMP_NEQ, RTN_LOCAL);
}
NftRule& NftRule::sourceIsOfThisHost() {
  return addressType(NFTA_FIB_F_SADDR, NFT_CMP_EQ, RTN_LOCAL);
}
NftRule& NftRule::sourceIsNotOfThisHost() {
  return addressType(NFTA_FIB_F_SADDR, NFT_CMP_NEQ, RTN_LOCAL);
}

NftRule& NftRule::destinationWasChanged() {
  uint32_t changed = IPS_DST_NAT, none = 0;
  Expression(batch_, "ct").number(NFTA_CT_DREG, NFT_REG_1).number(NFTA_CT_KEY, NFT_CT_STATUS);
  mask(bytesOf(changed));
  return compare(NFT_CMP_NEQ, bytesOf(none));
}

// Looks the packet's route up, by its destination and mark.
void NftRule::loadRoute(uint32_t result) {
  Expression(batch_, "fib")
      .number(NFTA_FIB_DREG, NFT_REG_1)
      .number(NFTA_FIB_RESULT, result)
      .number(NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR | NFTA_FIB_F_MARK);
}

NftRule& NftRule::routedTo(const std::string& interface) {
  loadRoute(NFT_FIB_RESULT_OIFNAME);
  return compare(NFT_CMP_EQ, padded(interface));
}

// The packet has the mark only while its route is looked up. For what is delivered to this host,
// the look-up finds no interface.
NftRule& NftRule::deliveredWith(uint32_t value, uint32_t mask) {
  constexpr uint32_t kFormer = NFT_REG_4, kNone = 0;
  Expression(batch_, "meta").number(NFTA_META_DREG, kFormer).number(NFTA_META_KEY, NFT_META_MARK);
  setMark(value, mask);
  loadRoute(NFT_FIB_RESULT_OIF);
  Expression(batch_, "meta").number(NFTA_META_KEY, NFT_META_MARK).number(NFTA_META_SREG, kFormer);
  return compare(NFT_CMP_EQ, bytesOf(kNone));
}

void NftRule::socket(uint32_t key) {
  Expression(batch_, "socket").number(NFTA_SOCKET_KEY, key).number(NFTA_SOCKET_DREG, NFT_REG_1);
}

// The rule ends where the kernel has no mark to load: at a socket that only waits for the end of an
// old connection (TIME_WAIT).
NftRule& NftRule::hasFullSocket() {
  socket(NFT_SOCKET_MARK);
  return *this;
}

NftRule& NftRule::hasTransparentSocket() {
  socket(NFT_SOCKET_TRANSPARENT);
  return compare(NFT_CMP_EQ, bytesOf(kYes));
}

NftRule& NftRule::hasSocketForAnyAddress() {
  socket(NFT_SOCKET_WILDCARD);
  return compare(NFT_CMP_EQ, bytesOf(kYes));
}

NftRule& NftRule::proxyTo(ByteView address, uint16_t port) {
  load(NFT_REG_1, address);
  load(NFT_REG_2, network16(port));
  Expression(batch_, "tproxy")
      .number(NFTA_TPROXY_FAMILY, address.size() == 16 ? NFPROTO_IPV6 : NFPROTO_IPV4)
      .number(NFTA_TPROXY_REG_ADDR, NFT_REG_1)
      .number(NFTA_TPROXY_REG_PORT, NFT_REG_2);
  return *this;
}

NftRule& NftRule::changeEnds(const std::string& set, bool v6, uint32_t operation) {
  const uint32_t address = v6 ? 16 : 4;
  const uint32_t half = address / 4 + 1;  // registers of 32 bits for an address and a port
  uint32_t reg = NFT_REG32_00;
  payloadTo(reg, NFT_PAYLOAD_NETWORK_HEADER, v6 ? kV6Source : kV4Source, address);
  payloadTo(reg + half - 1, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2);
  reg += half;
  payloadTo(reg, NFT_PAYLOAD_NETWORK_HEADER, v6 ? kV6Destination : kV4Destination, address);
  payloadTo(reg + half - 1, NFT_PAYLOAD_TRANSPORT_HEADER, kTcpPorts, 2);
  Expression(batch_, "dynset")
      .text(NFTA_DYNSET_SET_NAME, set)
      .number(NFTA_DYNSET_OP, operation)
      .number(NFTA_DYNSET_SREG_KEY, NFT_REG32_00);
  return *this;
}

NftRule& NftRule::addEndsTo(const std::string& set, bool v6) {
  return changeEnds(set, v6, NFT_DYNSET_OP_UPDATE);
}
NftRule& NftRule::removeEndsFrom(const std::string& set, bool v6) {
  return changeEnds(set, v6, NFT_DYNSET_OP_DELETE);
}

NftRule& NftRule::changeMark(const char* expression, uint16_t keyType, uint32_t key, uint16_t from,
                             uint16_t to, uint32_t value, uint32_t mask) {
  Expression(batch_, expression).number(to, NFT_REG_1).number(keyType, key);
  uint32_t others = ~mask;
  this->mask(bytesOf(others), bytesOf(value));
  Expression(batch_, expression).number(keyType, key).number(from, NFT_REG_1);
  return *this;
}
NftRule& NftRule::setMark(uint32_t value, uint32_t mask) {
  return changeMark("meta", NFTA_META_KEY, NFT_META_MARK, NFTA_META_SREG, NFTA_META_DREG, value,
                    mask);
}
NftRule& NftRule::setConnectionMark(uint32_t value, uint32_t mask) {
  return changeMark("ct", NFTA_CT_KEY, NFT_CT_MARK, NFTA_CT_SREG, NFTA_CT_DREG, value, mask);
}

NftRule& NftRule::changeDestination(ByteView address, uint16_t port) {
  load(NFT_REG_1, address);
  if (port) load(NFT_REG_2, network16(port));
  Expression e(batch_, "nat");
  e.number(NFTA_NAT_TYPE, NFT_NAT_DNAT)
      .number(NFTA_NAT_FAMILY, address.size() == 16 ? NFPROTO_IPV6 : NFPROTO_IPV4)
      .number(NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
  if (port) e.number(NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
  return *this;
}

NftRule& NftRule::masquerade() {
  Expression e(batch_, "masq");  // without attributes
  return *this;
}

NftRule& NftRule::verdict(int32_t code, const std::string& chain) {
  Expression e(batch_, "immediate");
  e.number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  size_t data = batch_.nest(NFTA_IMMEDIATE_DATA), verdict = batch_.nest(NFTA_DATA_VERDICT);
  batch_.put32(NFTA_VERDICT_CODE, static_cast<uint32_t>(code));
  if (!chain.empty()) batch_.put(NFTA_VERDICT_CHAIN, chain);
  batch_.endNest(verdict);
  batch_.endNest(data);
  return *this;
}

}  // namespace braid
