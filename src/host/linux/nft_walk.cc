// What becomes of a packet in a copy of the packet filter.

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "host/linux/nft_attributes.h"
#include "host/linux/nft_firewall.h"
#include "host/linux/xt_match.h"

namespace braid {

namespace {

constexpr int kDeepest = 16;  // the kernel's limit on nested jumps (NFT_JUMP_STACK_SIZE)
// Of a base chain and the chains that it leads to. Chosen: block lists have tens of thousands.
// Chains that jump to each other several times would be walked through without end otherwise.
constexpr size_t kMostRules = 65536;
constexpr uint32_t kStatusDnat = 0x20;                    // IPS_DST_NAT
constexpr uint32_t kEtherV4 = 0x0800, kEtherV6 = 0x86dd;  // of Ethernet
constexpr uint32_t kLocalType = 2, kUnicastType = 1;      // RTN_LOCAL, RTN_UNICAST
constexpr uint32_t kPortAt = 2, kTcpFlagsAt = 13;         // offsets in the transport header

}  // namespace

// Evaluates the rules for one packet. Each question has three possible answers: yes, no, and
// maybe.
struct NftFirewall::Walk {
  using Answer = NftAnswer;
  enum class Fate : uint8_t { kOn, kAccepted, kDropped, kMaybeAccepted };

  /// What a register holds.
  struct Value {
    enum class Kind : uint8_t { kUnknown, kKnown, kStranger } kind = Kind::kUnknown;
    std::vector<uint8_t> bytes{};  ///< kKnown
  };
  /// The verdict of a rule.
  struct Verdict {
    int32_t code = NFT_CONTINUE;
    std::string chain;
    bool isKnown = true;
  };

  const NftFirewall& wall;
  const NftPacket& packet;
  size_t rulesLeft = kMostRules;
  std::map<uint32_t, Value> registers{};
  std::string dropper{};  ///< chain of the rule that dropped the packet

  bool isV4() const { return packet.family == Address::Family::kV4; }
  bool isLocal() const { return packet.hook == NftPacket::Hook::kInput && !packet.isForeign; }

  static Value known(const void* at, size_t n) { return {Value::Kind::kKnown, bytesAt(at, n)}; }
  static Value number8(uint8_t v) { return known(&v, 1); }
  static Value number32(uint32_t v) { return known(&v, sizeof v); }
  static Value index(uint32_t v) { return v == 0 ? Value{} : number32(v); }
  static Value name(const std::string& interface) {
    char text[IFNAMSIZ]{};
    std::memcpy(text, interface.data(), std::min(interface.size(), sizeof text - 1));
    return known(text, sizeof text);
  }

  Value meta(uint32_t key) const {
    switch (key) {
      case NFT_META_L4PROTO:
        return number8(packet.protocol);
      case NFT_META_NFPROTO:
        return number8(isV4() ? NFPROTO_IPV4 : NFPROTO_IPV6);
      case NFT_META_PROTOCOL: {
        uint16_t type = htons(isV4() ? kEtherV4 : kEtherV6);
        return known(&type, sizeof type);
      }
      case NFT_META_IIF:
        return index(packet.inIndex);
      case NFT_META_IIFNAME:
        return name(packet.in);
      case NFT_META_OIF:
        return index(packet.outIndex);
      case NFT_META_OIFNAME:
        return name(packet.out);
      case NFT_META_MARK:
        return number32(packet.mark);
      case NFT_META_PKTTYPE:
        return number8(0);  // PACKET_HOST
      default:
        return {};
    }
  }

  // `offset`, `length`: a part of the address, which begins inside it.
  Value address(const std::optional<Address>& which, uint32_t offset, uint32_t length) const {
    if (!which) return {Value::Kind::kStranger, {}};
    ByteView bytes = which->view();
    if (which->family != packet.family || length > bytes.size() - offset) return {};
    return known(bytes.data() + offset, length);
  }

  Value payload(uint32_t base, uint32_t offset, uint32_t length) const {
    if (base == NFT_PAYLOAD_TRANSPORT_HEADER) {
      uint16_t port = htons(packet.port);
      if (offset == kPortAt && length == 2) return known(&port, sizeof port);
      if (packet.protocol == IPPROTO_TCP && offset == kTcpFlagsAt && length == 1)
        return number8(tcpFlagsOf(packet));
      return {};
    }
    if (base != NFT_PAYLOAD_NETWORK_HEADER) return {};
    uint32_t source = isV4() ? 12 : 8, size = isV4() ? 4 : 16, destination = source + size;
    if (offset >= source && offset < destination)
      return address(packet.source, offset - source, length);
    if (offset >= destination && offset < destination + size)
      return address(packet.destination, offset - destination, length);
    if (offset == (isV4() ? 9 : 6) && length == 1) return number8(packet.protocol);
    return {};
  }

  Value connection(uint32_t key) const {
    if (key == NFT_CT_STATE) return number32(connectionState(packet));
    if (key == NFT_CT_STATUS && !packet.isAnswer)
      return number32(packet.isTranslated ? kStatusDnat : 0);
    if (key == NFT_CT_DIRECTION) return number8(packet.isAnswer ? 1 : 0);
    return {};
  }

  // As memcmp(), of the first `n` bytes.
  static int order(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, size_t n) {
    return n == 0 ? 0 : std::memcmp(a.data(), b.data(), n);
  }

  // An unknown sender's address is assumed to be in none of the networks that rules name.
  static Answer compare(const Value& value, uint32_t op, const std::vector<uint8_t>& with) {
    if (value.kind == Value::Kind::kUnknown) return Answer::kMaybe;
    if (value.kind == Value::Kind::kStranger) return op == NFT_CMP_NEQ ? Answer::kYes : Answer::kNo;
    size_t n = std::min(value.bytes.size(), with.size());
    int c = order(value.bytes, with, n);
    bool holds = op == NFT_CMP_EQ    ? c == 0
                 : op == NFT_CMP_NEQ ? c != 0
                 : op == NFT_CMP_LT  ? c < 0
                 : op == NFT_CMP_LTE ? c <= 0
                 : op == NFT_CMP_GT  ? c > 0
                                     : c >= 0;
    return holds ? Answer::kYes : Answer::kNo;
  }

  static Value bitwise(Value value, const NftAttributes& data) {
    std::vector<uint8_t> mask = data.value(NFTA_BITWISE_MASK), flip = data.value(NFTA_BITWISE_XOR);
    if (value.kind != Value::Kind::kKnown) return value;
    if (mask.size() != value.bytes.size() || flip.size() != mask.size()) return {};
    for (size_t i = 0; i < mask.size(); ++i)
      value.bytes[i] = static_cast<uint8_t>((value.bytes[i] & mask[i]) ^ flip[i]);
    return value;
  }

  // The element that stands for the value; nullptr: none. An unknown sender's address is in no
  // element but the one for all others.
  static const Element* elementOf(const Set& set, const Value& value) {
    const Element *best = nullptr, *fallback = nullptr;
    for (const Element& e : set.elements) {
      if (e.isDefault) fallback = &e;
      if (e.isDefault || value.kind == Value::Kind::kStranger || e.key.size() > value.bytes.size())
        continue;
      int c = order(e.key, value.bytes, e.key.size());
      if (!set.isInterval && c == 0) return &e;
      if (!set.isInterval || c > 0) continue;
      int newer = best ? order(e.key, best->key, std::min(e.key.size(), best->key.size())) : 1;
      if (newer > 0 || (newer == 0 && best->isEnd)) best = &e;
    }
    return best && !best->isEnd ? best : fallback;
  }

  Answer lookUp(const Chain& chain, const NftAttributes& data, Verdict& verdict) {
    const Value& value = registers[data.number(NFTA_LOOKUP_SREG).value_or(0)];
    bool isInverted = (data.number(NFTA_LOOKUP_FLAGS).value_or(0) & NFT_LOOKUP_F_INV) != 0;
    const Set* set = wall.findSet(chain.family, chain.table, data.text(NFTA_LOOKUP_SET));
    if (!set || !set->isKnown || value.kind == Value::Kind::kUnknown) {
      if (!set || set->isVerdictMap) verdict.isKnown = false;
      return Answer::kMaybe;
    }
    const Element* found = elementOf(*set, value);
    if ((found != nullptr) == isInverted) return Answer::kNo;
    if (set->isVerdictMap && found) {
      verdict.code = found->code;
      verdict.chain = found->chain;
    }
    // What a map gives for the value is not followed.
    if (data.get(NFTA_LOOKUP_DREG) && !set->isVerdictMap)
      registers[data.number(NFTA_LOOKUP_DREG).value_or(0)] = {};
    return Answer::kYes;
  }

  Answer range(const NftAttributes& data) {
    const Value& value = registers[data.number(NFTA_RANGE_SREG).value_or(0)];
    Answer from = compare(value, NFT_CMP_GTE, data.value(NFTA_RANGE_FROM_DATA));
    Answer to = compare(value, NFT_CMP_LTE, data.value(NFTA_RANGE_TO_DATA));
    if (from == Answer::kMaybe) return from;
    bool inside = from == Answer::kYes && to == Answer::kYes;
    bool isMeant = data.number(NFTA_RANGE_OP).value_or(0) == NFT_RANGE_EQ;
    return inside == isMeant ? Answer::kYes : Answer::kNo;
  }

  Value route(const NftAttributes& data) const {
    bool ofDestination = (data.number(NFTA_FIB_FLAGS).value_or(0) & NFTA_FIB_F_DADDR) != 0;
    if (data.number(NFTA_FIB_RESULT) != uint32_t{NFT_FIB_RESULT_ADDRTYPE} || !ofDestination)
      return {};
    return number32(isLocal() ? kLocalType : kUnicastType);
  }

  // Evaluates one expression. Returns whether the rule continues after it.
  Answer step(const Chain& chain, const std::string& name, const NftAttributes& data,
              Verdict& verdict) {
    auto at = [&](uint16_t type) { return data.number(type).value_or(0); };
    if (name == "meta" && data.get(NFTA_META_DREG)) {
      registers[at(NFTA_META_DREG)] = meta(at(NFTA_META_KEY));
    } else if (name == "payload" && data.get(NFTA_PAYLOAD_DREG)) {
      registers[at(NFTA_PAYLOAD_DREG)] =
          payload(at(NFTA_PAYLOAD_BASE), at(NFTA_PAYLOAD_OFFSET), at(NFTA_PAYLOAD_LEN));
    } else if (name == "ct" && data.get(NFTA_CT_DREG)) {
      registers[at(NFTA_CT_DREG)] = connection(at(NFTA_CT_KEY));
    } else if (name == "fib") {
      registers[at(NFTA_FIB_DREG)] = route(data);
    } else if (name == "bitwise") {
      registers[at(NFTA_BITWISE_DREG)] = bitwise(registers[at(NFTA_BITWISE_SREG)], data);
    } else if (name == "cmp") {
      return compare(registers[at(NFTA_CMP_SREG)], at(NFTA_CMP_OP), data.value(NFTA_CMP_DATA));
    } else if (name == "range") {
      return range(data);
    } else if (name == "lookup") {
      return lookUp(chain, data, verdict);
    } else if (name == "match") {
      const nlattr* info = data.get(NFTA_MATCH_INFO);
      if (!info) return Answer::kMaybe;
      std::vector<uint8_t> bytes =
          bytesAt(mnl_attr_get_payload(info), mnl_attr_get_payload_len(info));
      return xtMatch(data.text(NFTA_MATCH_NAME), at(NFTA_MATCH_REV), bytes, packet);
    } else if (name == "immediate") {
      return immediate(data, verdict);
    } else if (name == "reject") {
      verdict.code = NF_DROP;
    } else if (name == "target") {
      XtTarget target = xtTarget(data.text(NFTA_TARGET_NAME));
      verdict.isKnown = target != XtTarget::kUnknown;
      if (target == XtTarget::kDrop) verdict.code = NF_DROP;
    } else if (name != "counter" && name != "log" && name != "notrack" && name != "meta" &&
               name != "ct" && name != "last") {
      registers.clear();  // it may have written one
      return Answer::kMaybe;
    }
    return Answer::kYes;
  }

  Answer immediate(const NftAttributes& data, Verdict& verdict) {
    const nlattr* nested = data.get(NFTA_IMMEDIATE_DATA);
    const nlattr* found = nested ? NftAttributes(nested).get(NFTA_DATA_VERDICT) : nullptr;
    if (!found) {
      registers.erase(data.number(NFTA_IMMEDIATE_DREG).value_or(0));
      return Answer::kYes;
    }
    NftAttributes inside(found);
    verdict.code = static_cast<int32_t>(inside.number(NFTA_VERDICT_CODE).value_or(0));
    verdict.chain = inside.text(NFTA_VERDICT_CHAIN);
    return Answer::kYes;
  }

  Answer run(const Chain& chain, const std::vector<uint8_t>& rule, Verdict& verdict) {
    registers.clear();
    Answer matches = Answer::kYes;
    NftAttributes list(rule.data(), rule.size());
    for (const auto& [type, element] : list.all()) {
      NftAttributes expression(element);
      Answer on = step(chain, expression.text(NFTA_EXPR_NAME),
                       NftAttributes(expression.get(NFTA_EXPR_DATA)), verdict);
      if (on == Answer::kNo) return on;
      if (on == Answer::kMaybe) matches = on;
    }
    return matches;
  }

  // What a chain does with the packet; kOn: what its caller does next, or the policy.
  Fate through(const Chain& chain, int depth) {
    if (depth > kDeepest) return Fate::kMaybeAccepted;
    bool mayHaveLeft = false;  // a rule that matches perhaps has left the chain
    for (const auto& rule : chain.rules) {
      if (rulesLeft == 0) return Fate::kMaybeAccepted;
      --rulesLeft;
      Verdict verdict;
      Answer matches = run(chain, rule, verdict);
      if (matches == Answer::kNo) continue;
      if (!verdict.isKnown) return Fate::kMaybeAccepted;
      Fate fate = Fate::kOn;
      if (verdict.code == NF_ACCEPT) fate = Fate::kAccepted;
      if (verdict.code == NF_DROP) fate = Fate::kDropped, dropper = chain.name;
      if (verdict.code > NF_ACCEPT) fate = Fate::kMaybeAccepted;  // NF_QUEUE and the like
      if (verdict.code == NFT_JUMP || verdict.code == NFT_GOTO) {
        const Chain* next = wall.find(chain.family, chain.table, verdict.chain);
        fate = next ? through(*next, depth + 1) : Fate::kMaybeAccepted;
        if (fate == Fate::kOn && verdict.code == NFT_GOTO && matches == Answer::kYes) return fate;
      }
      if (verdict.code == NFT_RETURN && matches == Answer::kYes) return Fate::kOn;
      if (fate == Fate::kOn) {
        mayHaveLeft |= verdict.code == NFT_RETURN || verdict.code == NFT_GOTO;
        continue;
      }
      // Dropped here, or perhaps what comes after this chain: that alone is certain.
      if (matches == Answer::kYes) return fate == Fate::kDropped && mayHaveLeft ? Fate::kOn : fate;
      if (fate != Fate::kDropped) return Fate::kMaybeAccepted;
    }
    return Fate::kOn;
  }
};

std::vector<NftDrop> NftFirewall::drops(const NftPacket& packet) const {
  uint8_t own = packet.family == Address::Family::kV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
  std::vector<NftDrop> out;
  for (const Chain& chain : chains_) {
    if (chain.hook != packet.hook || (chain.family != NFPROTO_INET && chain.family != own))
      continue;
    Walk walk{*this, packet};
    Walk::Fate fate = walk.through(chain, 0);
    bool byPolicy = fate == Walk::Fate::kOn && chain.drops;
    if (!byPolicy && fate != Walk::Fate::kDropped) continue;
    out.push_back({chain.family, chain.table, chain.name, walk.dropper, byPolicy});
  }
  return out;
}

}  // namespace braid
