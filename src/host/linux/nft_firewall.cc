#include "host/linux/nft_firewall.h"

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "host/linux/netlink.h"
#include "host/linux/nft_attributes.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr size_t kFilterBytes = 65536;
constexpr timeval kFilterPatience{5, 0};
// Chosen: more than a host's list of networks or ports has, and less than a list of addresses that
// are to be blocked, which would cost much to read again and again.
constexpr size_t kMostElements = 4096;
constexpr size_t kWidestKey = 16;  // NFT_REG_SIZE: one register
constexpr int kTries = 8;          // reads that another program's change may spoil

bool isIp(uint8_t family) {
  return family == NFPROTO_INET || family == NFPROTO_IPV4 || family == NFPROTO_IPV6;
}

std::optional<NftPacket::Hook> hookOf(uint32_t number) {
  if (number == uint32_t{NF_INET_LOCAL_IN}) return NftPacket::Hook::kInput;
  if (number == uint32_t{NF_INET_FORWARD}) return NftPacket::Hook::kForward;
  return std::nullopt;
}

// Another program has changed the filter while it was read (NLM_F_DUMP_INTR, or a set is gone).
struct Changed {};

}  // namespace

struct NftFirewall::Reader {
  Reader() : socket(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)) {
    if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) fail(errno);
    ::setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &kFilterPatience,
                 sizeof kFilterPatience);
  }
  ~Reader() {
    if (socket) mnl_socket_close(socket);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[noreturn]] static void fail(int error) {
    throw SystemError(error, std::string("cannot read the packet filter: ") + std::strerror(error));
  }

  using Use = std::function<void(uint8_t family, const NftAttributes&)>;

  // Asks for what is there. `narrow` adds attributes that say of what.
  void ask(uint16_t type, uint16_t flags, uint8_t family, const Use& use,
           const std::function<void(nlmsghdr*)>& narrow = {}) {
    std::vector<uint8_t> bytes(kFilterBytes);
    nlmsghdr* header = mnl_nlmsg_put_header(bytes.data());
    header->nlmsg_type = static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
    header->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    header->nlmsg_seq = ++sequence;
    auto* generic = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
    generic->nfgen_family = family;
    if (narrow) narrow(header);
    if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0) fail(errno);
    for (bool isDone = false; !isDone;) {
      ssize_t got = mnl_socket_recvfrom(socket, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno);
      forEachMessage({bytes.data(), static_cast<size_t>(got)}, [&](const nlmsghdr& message) {
        if (isDone || message.nlmsg_seq != sequence) return;
        if (message.nlmsg_flags & NLM_F_DUMP_INTR) throw Changed();
        if (std::optional<int> error = acknowledgment(message)) {
          if (*error == ENOENT && narrow) throw Changed();
          if (*error != 0) fail(*error);
          isDone = true;
        }
        if (isDone || mnl_nlmsg_get_payload_len(&message) < sizeof(nfgenmsg)) return;
        const auto* head = static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(&message));
        use(head->nfgen_family,
            NftAttributes(head + 1, mnl_nlmsg_get_payload_len(&message) - sizeof(nfgenmsg)));
      });
    }
  }

  void read(NftFirewall& wall) {
    wall.chains_.clear();
    wall.sets_.clear();
    ask(NFT_MSG_GETCHAIN, NLM_F_DUMP, AF_UNSPEC,
        [&](uint8_t family, const NftAttributes& chain) { onChain(wall, family, chain); });
    ask(NFT_MSG_GETRULE, NLM_F_DUMP, AF_UNSPEC,
        [&](uint8_t family, const NftAttributes& rule) { onRule(wall, family, rule); });
    ask(NFT_MSG_GETSET, NLM_F_DUMP, AF_UNSPEC,
        [&](uint8_t family, const NftAttributes& set) { onSet(wall, family, set); });
    for (Set& set : wall.sets_) readElements(set);
  }

  static void onChain(NftFirewall& wall, uint8_t family, const NftAttributes& chain) {
    if (!isIp(family)) return;
    Chain out{.family = family,
              .table = chain.text(NFTA_CHAIN_TABLE),
              .name = chain.text(NFTA_CHAIN_NAME)};
    if (const nlattr* nested = chain.get(NFTA_CHAIN_HOOK)) {
      NftAttributes hook(nested);
      out.hook = hookOf(hook.number(NFTA_HOOK_HOOKNUM).value_or(UINT32_MAX));
      out.priority = static_cast<int32_t>(hook.number(NFTA_HOOK_PRIORITY).value_or(0));
      out.drops = chain.number(NFTA_CHAIN_POLICY) == uint32_t{NF_DROP};
    }
    wall.chains_.push_back(std::move(out));
  }

  static void onRule(NftFirewall& wall, uint8_t family, const NftAttributes& rule) {
    Chain* chain = wall.find(family, rule.text(NFTA_RULE_TABLE), rule.text(NFTA_RULE_CHAIN));
    const nlattr* list = rule.get(NFTA_RULE_EXPRESSIONS);
    if (!chain || !list) return;
    chain->rules.push_back(bytesAt(mnl_attr_get_payload(list), mnl_attr_get_payload_len(list)));
  }

  static void onSet(NftFirewall& wall, uint8_t family, const NftAttributes& set) {
    if (!isIp(family)) return;
    uint32_t flags = set.number(NFTA_SET_FLAGS).value_or(0);
    Set out{.family = family, .table = set.text(NFTA_SET_TABLE), .name = set.text(NFTA_SET_NAME)};
    out.isInterval = (flags & NFT_SET_INTERVAL) != 0;
    out.isVerdictMap =
        (flags & NFT_SET_MAP) != 0 && set.number(NFTA_SET_DATA_TYPE) == uint32_t{NFT_DATA_VERDICT};
    out.isKnown = (flags & (NFT_SET_OBJECT | NFT_SET_CONCAT)) == 0 &&
                  set.number(NFTA_SET_KEY_LEN).value_or(UINT32_MAX) <= kWidestKey;
    wall.sets_.push_back(std::move(out));
  }

  void readElements(Set& set) {
    if (!set.isKnown) return;
    auto use = [&](uint8_t, const NftAttributes& message) {
      const nlattr* list = message.get(NFTA_SET_ELEM_LIST_ELEMENTS);
      if (!list || !set.isKnown) return;
      const NftAttributes elements(list);
      for (const auto& [type, element] : elements.all()) {
        if (set.elements.size() == kMostElements) set.isKnown = false;
        if (set.isKnown) set.elements.push_back(elementOf(NftAttributes(element)));
      }
    };
    ask(NFT_MSG_GETSETELEM, NLM_F_DUMP, set.family, use, [&](nlmsghdr* header) {
      mnl_attr_put_strz(header, NFTA_SET_ELEM_LIST_TABLE, set.table.c_str());
      mnl_attr_put_strz(header, NFTA_SET_ELEM_LIST_SET, set.name.c_str());
    });
    if (!set.isKnown) set.elements.clear();
  }

  static Element elementOf(const NftAttributes& element) {
    uint32_t flags = element.number(NFTA_SET_ELEM_FLAGS).value_or(0);
    Element out{.key = element.value(NFTA_SET_ELEM_KEY),
                .isEnd = (flags & NFT_SET_ELEM_INTERVAL_END) != 0,
                .isDefault = (flags & NFT_SET_ELEM_CATCHALL) != 0};
    const nlattr* data = element.get(NFTA_SET_ELEM_DATA);
    const nlattr* verdict = data ? NftAttributes(data).get(NFTA_DATA_VERDICT) : nullptr;
    if (verdict) {
      NftAttributes inside(verdict);
      out.code = static_cast<int32_t>(inside.number(NFTA_VERDICT_CODE).value_or(0));
      out.chain = inside.text(NFTA_VERDICT_CHAIN);
    }
    return out;
  }

  mnl_socket* socket;
  uint32_t sequence = 0;
};

NftFirewall::NftFirewall() {
  for (int left = kTries; left > 0; --left) {
    try {
      Reader().read(*this);
      break;
    } catch (const Changed&) {
      if (left == 1) Reader::fail(EINTR);
    }
  }
  std::stable_sort(chains_.begin(), chains_.end(),
                   [](const Chain& a, const Chain& b) { return a.priority < b.priority; });
}
NftFirewall::~NftFirewall() = default;

uint32_t NftFirewall::generation() {
  uint32_t out = 0;
  Reader().ask(NFT_MSG_GETGEN, NLM_F_ACK, AF_UNSPEC, [&](uint8_t, const NftAttributes& all) {
    out = all.number(NFTA_GEN_ID).value_or(0);
  });
  return out;
}

NftFirewall::Chain* NftFirewall::find(uint8_t family, const std::string& table,
                                      const std::string& name) {
  auto found = std::find_if(chains_.begin(), chains_.end(), [&](const Chain& c) {
    return c.family == family && c.table == table && c.name == name;
  });
  return found == chains_.end() ? nullptr : &*found;
}

const NftFirewall::Set* NftFirewall::findSet(uint8_t family, const std::string& table,
                                             const std::string& name) const {
  auto found = std::find_if(sets_.begin(), sets_.end(), [&](const Set& s) {
    return s.family == family && s.table == table && s.name == name;
  });
  return found == sets_.end() ? nullptr : &*found;
}

bool NftFirewall::hasChain(uint8_t family, const std::string& table, const std::string& name,
                           bool isPrefix) const {
  return std::any_of(chains_.begin(), chains_.end(), [&](const Chain& c) {
    return (family == 0 || c.family == family) && c.table == table &&
           (isPrefix ? c.name.starts_with(name) : c.name == name);
  });
}

std::string NftDrop::tableWords() const {
  return (family == NFPROTO_INET ? "inet " : family == NFPROTO_IPV4 ? "ip " : "ip6 ") + table;
}

std::string NftDrop::toString() const {
  return "chain " + chain + " of table " + tableWords() +
         (byPolicy ? ", by its policy" : ", by a rule") +
         (byPolicy || within == chain ? "" : " of chain " + within);
}

}  // namespace braid
