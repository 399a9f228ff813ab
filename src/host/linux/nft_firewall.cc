#include "host/linux/nft_firewall.h"

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "host/system.h"

namespace braid {

namespace {

constexpr size_t kDumpBytes = 65536;
constexpr timeval kPatience{5, 0};
constexpr int kDeepest = 16;            // the kernel's limit on nested jumps (NFT_JUMP_STACK_SIZE)
constexpr uint32_t kNewConnection = 8;  // NF_CT_STATE_BIT(IP_CT_NEW)
constexpr uint32_t kSourceV4 = 12, kSourceV6 = 8, kDestinationPort = 2;  // offsets in their headers

// The attributes of a message or of a nested attribute, by type. Incomplete ones are omitted.
class Attributes {
 public:
  Attributes(const void* begin, size_t bytes) {
    const auto* at = static_cast<const nlattr*>(begin);
    const char* end = static_cast<const char*>(begin) + bytes;
    for (; mnl_attr_ok(at, static_cast<int>(end - reinterpret_cast<const char*>(at)));
         at = mnl_attr_next(at))
      all_.emplace_back(mnl_attr_get_type(at), at);
  }
  explicit Attributes(const nlattr* nested)
      : Attributes(nested ? mnl_attr_get_payload(nested) : nullptr,
                   nested ? mnl_attr_get_payload_len(nested) : 0) {}

  const nlattr* get(uint16_t type) const {
    for (const auto& [t, a] : all_)
      if (t == type) return a;
    return nullptr;
  }
  std::string text(uint16_t type) const {
    const nlattr* a = get(type);
    if (!a || mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0) return {};
    return mnl_attr_get_str(a);
  }
  /// A number, which the kernel sends in network order.
  std::optional<uint32_t> number(uint16_t type) const {
    const nlattr* a = get(type);
    if (!a || mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return std::nullopt;
    return ntohl(mnl_attr_get_u32(a));
  }
  /// The bytes of a value: the NFTA_DATA_VALUE within the attribute.
  std::vector<uint8_t> value(uint16_t type) const {
    const nlattr* nested = get(type);
    const nlattr* a = nested ? Attributes(nested).get(NFTA_DATA_VALUE) : nullptr;
    if (!a) return {};
    const auto* bytes = static_cast<const uint8_t*>(mnl_attr_get_payload(a));
    return {bytes, bytes + mnl_attr_get_payload_len(a)};
  }
  const std::vector<std::pair<uint16_t, const nlattr*>>& all() const { return all_; }

 private:
  std::vector<std::pair<uint16_t, const nlattr*>> all_;
};

std::vector<uint8_t> bytesOf(const void* at, size_t n) {
  const auto* b = static_cast<const uint8_t*>(at);
  return {b, b + n};
}

}  // namespace

// ---- reading

struct NftFirewall::Reader {
  explicit Reader(NftFirewall& wall)
      : firewall(wall), socket(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)) {
    if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) fail(errno);
    ::setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  }
  ~Reader() {
    if (socket) mnl_socket_close(socket);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[noreturn]] static void fail(int error) {
    throw SystemError(error, std::string("cannot read the packet filter: ") + std::strerror(error));
  }

  void dump(uint16_t type, const std::function<void(uint8_t, const Attributes&)>& use) {
    alignas(nlmsghdr) char request[MNL_NLMSG_HDRLEN + sizeof(nfgenmsg) + 16]{};
    nlmsghdr* header = mnl_nlmsg_put_header(request);
    header->nlmsg_type = static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
    header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    header->nlmsg_seq = ++sequence;
    auto* generic = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
    generic->nfgen_family = AF_UNSPEC;
    if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0) fail(errno);
    std::vector<char> bytes(kDumpBytes);
    auto onMessage = [](const nlmsghdr* message, void* data) {
      if (mnl_nlmsg_get_payload_len(message) < sizeof(nfgenmsg)) return MNL_CB_OK;
      const auto* head = static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(message));
      const auto& visit =
          *static_cast<const std::function<void(uint8_t, const Attributes&)>*>(data);
      visit(head->nfgen_family,
            Attributes(head + 1, mnl_nlmsg_get_payload_len(message) - sizeof(nfgenmsg)));
      return MNL_CB_OK;
    };
    for (int more = MNL_CB_OK; more > MNL_CB_STOP;) {
      ssize_t got = mnl_socket_recvfrom(socket, bytes.data(), bytes.size());
      if (got < 0) fail(errno);
      more = mnl_cb_run(bytes.data(), static_cast<size_t>(got), sequence,
                        mnl_socket_get_portid(socket), onMessage,
                        const_cast<void*>(static_cast<const void*>(&use)));
      if (more == MNL_CB_ERROR) fail(errno);
    }
  }

  void onChain(uint8_t family, const Attributes& chain) const {
    Chain out{.family = family,
              .table = chain.text(NFTA_CHAIN_TABLE),
              .name = chain.text(NFTA_CHAIN_NAME)};
    if (const nlattr* nested = chain.get(NFTA_CHAIN_HOOK)) {
      Attributes hook(nested);
      bool isIp = family == NFPROTO_INET || family == NFPROTO_IPV4 || family == NFPROTO_IPV6;
      out.isInput = isIp && hook.number(NFTA_HOOK_HOOKNUM) == uint32_t{NF_INET_LOCAL_IN};
      out.priority = static_cast<int32_t>(hook.number(NFTA_HOOK_PRIORITY).value_or(0));
      out.drops = chain.number(NFTA_CHAIN_POLICY) == uint32_t{NF_DROP};
    }
    firewall.chains_.push_back(std::move(out));
  }

  void onRule(uint8_t family, const Attributes& rule) const {
    Chain* chain = firewall.find(family, rule.text(NFTA_RULE_TABLE), rule.text(NFTA_RULE_CHAIN));
    const nlattr* list = rule.get(NFTA_RULE_EXPRESSIONS);
    if (!chain || !list) return;
    chain->rules.push_back(bytesOf(mnl_attr_get_payload(list), mnl_attr_get_payload_len(list)));
  }

  NftFirewall& firewall;
  mnl_socket* socket;
  uint32_t sequence = 0;
};

NftFirewall::NftFirewall() {
  Reader reader(*this);
  reader.dump(NFT_MSG_GETCHAIN,
              [&](uint8_t family, const Attributes& chain) { reader.onChain(family, chain); });
  reader.dump(NFT_MSG_GETRULE,
              [&](uint8_t family, const Attributes& rule) { reader.onRule(family, rule); });
  std::stable_sort(chains_.begin(), chains_.end(),
                   [](const Chain& a, const Chain& b) { return a.priority < b.priority; });
}
NftFirewall::~NftFirewall() = default;

NftFirewall::Chain* NftFirewall::find(uint8_t family, const std::string& table,
                                      const std::string& name) {
  auto found = std::find_if(chains_.begin(), chains_.end(), [&](const Chain& c) {
    return c.family == family && c.table == table && c.name == name;
  });
  return found == chains_.end() ? nullptr : &*found;
}

// ---- what becomes of a datagram

// Evaluates the rules for one datagram. Each question has three possible answers: yes, no, and
// maybe.
struct NftFirewall::Walk {
  enum class Answer : uint8_t { kNo, kMaybe, kYes };
  enum class Fate : uint8_t { kOn, kAccepted, kDropped, kMaybeAccepted };

  /// What a register holds.
  struct Value {
    enum class Kind : uint8_t { kUnknown, kKnown, kStranger } kind = Kind::kUnknown;
    std::vector<uint8_t> bytes{};  ///< kKnown
    bool isState = false;          ///< it is a connection tracking state
  };

  const NftFirewall& wall;
  const Datagram& datagram;
  std::map<uint32_t, Value> registers{};

  static Value known(const void* at, size_t n) { return {Value::Kind::kKnown, bytesOf(at, n)}; }
  static Value stranger() { return {Value::Kind::kStranger, {}}; }
  static Value number8(uint8_t v) { return known(&v, 1); }
  static Value number32(uint32_t v) { return known(&v, sizeof v); }

  Value meta(uint32_t key) const {
    switch (key) {
      case NFT_META_L4PROTO:
        return number8(IPPROTO_UDP);
      case NFT_META_NFPROTO:
        return number8(datagram.family == Address::Family::kV4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
      case NFT_META_IIF:
        return number32(datagram.index);
      case NFT_META_IIFNAME: {
        char name[16]{};  // IFNAMSIZ
        std::memcpy(name, datagram.interface.data(),
                    std::min<size_t>(datagram.interface.size(), sizeof name - 1));
        return known(name, sizeof name);
      }
      default:
        return {};
    }
  }

  Value payload(uint32_t base, uint32_t offset, uint32_t length) const {
    if (base == NFT_PAYLOAD_TRANSPORT_HEADER && offset == kDestinationPort && length == 2) {
      uint16_t port = htons(datagram.port);
      return known(&port, sizeof port);
    }
    bool v4 = datagram.family == Address::Family::kV4;
    if (base == NFT_PAYLOAD_NETWORK_HEADER && offset == (v4 ? kSourceV4 : kSourceV6))
      return stranger();
    if (base == NFT_PAYLOAD_NETWORK_HEADER && v4 && offset == 9 && length == 1)
      return number8(IPPROTO_UDP);
    return {};
  }

  // An unknown sender's address is assumed to be in none of the networks that rules name.
  static Answer compare(const Value& value, uint32_t op, const std::vector<uint8_t>& with) {
    if (value.kind == Value::Kind::kUnknown) return Answer::kMaybe;
    if (value.kind == Value::Kind::kStranger) return op == NFT_CMP_NEQ ? Answer::kYes : Answer::kNo;
    size_t n = std::min(value.bytes.size(), with.size());
    int c = std::memcmp(value.bytes.data(), with.data(), n);
    bool holds = op == NFT_CMP_EQ    ? c == 0
                 : op == NFT_CMP_NEQ ? c != 0
                 : op == NFT_CMP_LT  ? c < 0
                 : op == NFT_CMP_LTE ? c <= 0
                 : op == NFT_CMP_GT  ? c > 0
                                     : c >= 0;
    return holds ? Answer::kYes : Answer::kNo;
  }

  static Value bitwise(Value value, const Attributes& data) {
    std::vector<uint8_t> mask = data.value(NFTA_BITWISE_MASK), flip = data.value(NFTA_BITWISE_XOR);
    if (value.kind != Value::Kind::kKnown) return value;
    if (mask.size() != value.bytes.size() || flip.size() != mask.size()) return {};
    for (size_t i = 0; i < mask.size(); ++i)
      value.bytes[i] = static_cast<uint8_t>((value.bytes[i] & mask[i]) ^ flip[i]);
    return value;
  }

  // Evaluates an iptables-nft extension. "-p udp --dport" is such a match; all others are unknown.
  Answer match(const Attributes& data) const {
    const nlattr* info = data.get(NFTA_MATCH_INFO);
    xt_udp udp{};
    if (data.text(NFTA_MATCH_NAME) != "udp" || !info || mnl_attr_get_payload_len(info) < sizeof udp)
      return Answer::kMaybe;
    std::memcpy(&udp, mnl_attr_get_payload(info), sizeof udp);
    if (udp.spts[0] != 0 || udp.spts[1] != 0xffff || (udp.invflags & XT_UDP_INV_SRCPT) != 0)
      return Answer::kMaybe;
    bool inside = udp.dpts[0] <= datagram.port && datagram.port <= udp.dpts[1];
    bool wanted = (udp.invflags & XT_UDP_INV_DSTPT) == 0;
    return inside == wanted ? Answer::kYes : Answer::kNo;
  }

  /// The verdict of a rule.
  struct Verdict {
    int32_t code = NFT_CONTINUE;
    std::string chain;
    bool isKnown = true;
  };

  // Evaluates one expression. Returns whether the rule continues after it.
  Answer step(const std::string& name, const Attributes& data, Verdict& verdict) {
    auto at = [&](uint16_t type) { return data.number(type).value_or(0); };
    if (name == "meta" && data.get(NFTA_META_DREG)) {
      registers[at(NFTA_META_DREG)] = meta(at(NFTA_META_KEY));
    } else if (name == "payload" && data.get(NFTA_PAYLOAD_DREG)) {
      registers[at(NFTA_PAYLOAD_DREG)] =
          payload(at(NFTA_PAYLOAD_BASE), at(NFTA_PAYLOAD_OFFSET), at(NFTA_PAYLOAD_LEN));
    } else if (name == "ct" && data.get(NFTA_CT_DREG)) {
      bool state = at(NFTA_CT_KEY) == NFT_CT_STATE;
      registers[at(NFTA_CT_DREG)] = state ? number32(kNewConnection) : Value{};
      registers[at(NFTA_CT_DREG)].isState = state;
    } else if (name == "bitwise") {
      registers[at(NFTA_BITWISE_DREG)] = bitwise(registers[at(NFTA_BITWISE_SREG)], data);
    } else if (name == "cmp") {
      return compare(registers[at(NFTA_CMP_SREG)], at(NFTA_CMP_OP), data.value(NFTA_CMP_DATA));
    } else if (name == "range") {
      const Value& value = registers[at(NFTA_RANGE_SREG)];
      Answer from = compare(value, NFT_CMP_GTE, data.value(NFTA_RANGE_FROM_DATA));
      Answer to = compare(value, NFT_CMP_LTE, data.value(NFTA_RANGE_TO_DATA));
      if (from == Answer::kMaybe) return from;
      bool inside = from == Answer::kYes && to == Answer::kYes;
      return inside == (at(NFTA_RANGE_OP) == NFT_RANGE_EQ) ? Answer::kYes : Answer::kNo;
    } else if (name == "lookup") {
      // Maps by connection state usually list established and related states; a new datagram
      // matches none of them.
      return registers[at(NFTA_LOOKUP_SREG)].isState ? Answer::kNo
                                                     : (verdict.isKnown = false, Answer::kMaybe);
    } else if (name == "match") {
      return match(data);
    } else if (name == "immediate") {
      return immediate(data, verdict);
    } else if (name == "reject") {
      verdict.code = NF_DROP;
    } else if (name == "target") {
      verdict.isKnown = data.text(NFTA_TARGET_NAME) == "REJECT";
      if (verdict.isKnown) verdict.code = NF_DROP;
    } else if (name != "counter" && name != "log" && name != "notrack") {
      return Answer::kMaybe;
    }
    return Answer::kYes;
  }

  static Answer immediate(const Attributes& data, Verdict& verdict) {
    const nlattr* nested = data.get(NFTA_IMMEDIATE_DATA);
    const nlattr* found = nested ? Attributes(nested).get(NFTA_DATA_VERDICT) : nullptr;
    if (!found) return Answer::kYes;
    Attributes inside(found);
    verdict.code = static_cast<int32_t>(inside.number(NFTA_VERDICT_CODE).value_or(0));
    verdict.chain = inside.text(NFTA_VERDICT_CHAIN);
    return Answer::kYes;
  }

  Answer run(const std::vector<uint8_t>& rule, Verdict& verdict) {
    registers.clear();
    Answer matches = Answer::kYes;
    Attributes list(rule.data(), rule.size());
    for (const auto& [type, element] : list.all()) {
      Attributes expression(element);
      Answer on = step(expression.text(NFTA_EXPR_NAME), Attributes(expression.get(NFTA_EXPR_DATA)),
                       verdict);
      if (on == Answer::kNo) return on;
      if (on == Answer::kMaybe) matches = on;
    }
    return matches;
  }

  Fate through(const Chain& chain, int depth) {
    if (depth > kDeepest) return Fate::kMaybeAccepted;
    for (const auto& rule : chain.rules) {
      Verdict verdict;
      Answer matches = run(rule, verdict);
      if (matches == Answer::kNo) continue;
      if (!verdict.isKnown) return Fate::kMaybeAccepted;
      Fate fate = Fate::kOn;
      if (verdict.code == NF_ACCEPT) fate = Fate::kAccepted;
      if (verdict.code == NF_DROP) fate = Fate::kDropped;
      if (verdict.code == NFT_JUMP || verdict.code == NFT_GOTO) {
        const Chain* next = wall.find(chain.family, chain.table, verdict.chain);
        fate = next ? through(*next, depth + 1) : Fate::kMaybeAccepted;
        if (fate == Fate::kOn && verdict.code == NFT_GOTO && matches == Answer::kYes) return fate;
      }
      if (verdict.code == NFT_RETURN && matches == Answer::kYes) return Fate::kOn;
      if (fate == Fate::kOn) continue;
      if (matches == Answer::kYes) return fate;
      if (fate != Fate::kDropped) return Fate::kMaybeAccepted;
    }
    return Fate::kOn;
  }
};

std::string NftFirewall::droppedBy(const Datagram& datagram) const {
  bool v4 = datagram.family == Address::Family::kV4;
  for (const Chain& chain : chains_) {
    bool meant = chain.family == NFPROTO_INET || chain.family == (v4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
    if (!chain.isInput || !meant) continue;
    Walk walk{*this, datagram};
    Walk::Fate fate = walk.through(chain, 0);
    bool byPolicy = fate == Walk::Fate::kOn && chain.drops;
    if (!byPolicy && fate != Walk::Fate::kDropped) continue;
    const char* family = chain.family == NFPROTO_INET ? "inet " : v4 ? "ip " : "ip6 ";
    return "chain " + chain.name + " of table " + family + chain.table +
           (byPolicy ? ", by its policy" : ", by a rule");
  }
  return {};
}

}  // namespace braid
