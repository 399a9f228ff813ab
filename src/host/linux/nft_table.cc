#include "host/linux/nft_table.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "host/linux/netlink_socket.h"
#include "host/linux/nft_batch.h"
#include "host/system_error.h"

namespace braid {

namespace {

constexpr const char* kFirst = "prerouting";  // the chain that the kernel calls
constexpr const char* kNew = "new";           // of packets that begin a connection
constexpr const char* kSets[] = {"destinations4", "destinations6"};
// Before the routing decision, which looks at the mark; NF_IP_PRI_MANGLE, where tables that mark stand.
constexpr int32_t kPriority = -150;
// Numbers by which nft shows the type of an address in a set (libnftables' TYPE_IPADDR, TYPE_IP6ADDR).
constexpr uint32_t kTypeV4 = 7, kTypeV6 = 8;
constexpr size_t kElementsPerMessage = 500;  // a list of elements has at most 65,535 bytes
constexpr int kSendBytes = 16 << 20;         // a batch goes in one piece
constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kAck = 0x10;  // RFC 9293 section 3.1
constexpr uint8_t kLoopback4[] = {127, 0, 0, 1};
constexpr uint8_t kLoopback6[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

[[noreturn]] void fail(int error) {
  std::string what = "cannot take TCP connections over for streams: nf_tables says ";
  what += std::strerror(error);
  if (error == EPERM || error == EACCES)
    what = std::string("cannot take TCP connections over: ") + kNetAdminRemedy;
  if (error == ENOENT || error == EOPNOTSUPP || error == EPROTONOSUPPORT)
    what +=
        "; the kernel needs nf_tables with tproxy, socket and fib (modules nft_tproxy, nft_socket, "
        "nft_fib_inet)";
  if (error == EEXIST) what += "; there is a table of this name: 'nft delete table inet NAME' removes it";
  throw SystemError(error, what);
}

// The address behind this one; false: there is none.
bool next(Address& a) {
  for (size_t i = a.view().size(); i-- > 0;)
    if (++a.bytes[i] != 0) return true;
  return false;
}

void putElement(NftBatch& batch, const Address& at, bool end) {
  size_t element = batch.nest(NFTA_LIST_ELEM);
  if (end) batch.put32(NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
  size_t key = batch.nest(NFTA_SET_ELEM_KEY);
  batch.put(NFTA_DATA_VALUE, at.view());
  batch.endNest(key);
  batch.endNest(element);
}

void putElements(NftBatch& batch, const std::string& table, const char* set,
                 std::span<const AddressRange> ranges) {
  batch.begin(NFT_MSG_NEWSETELEM, NLM_F_CREATE);
  batch.put(NFTA_SET_ELEM_LIST_TABLE, table);
  batch.put(NFTA_SET_ELEM_LIST_SET, std::string(set));
  size_t list = batch.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
  for (const AddressRange& range : ranges) {
    putElement(batch, range.first, false);
    Address behind = range.last;
    if (next(behind)) putElement(batch, behind, true);
  }
  batch.endNest(list);
}

void putSet(NftBatch& batch, const std::string& table, bool v6, const std::vector<AddressRange>& all) {
  const char* name = kSets[v6];
  batch.begin(NFT_MSG_NEWSET, NLM_F_CREATE);
  batch.put(NFTA_SET_TABLE, table);
  batch.put(NFTA_SET_NAME, std::string(name));
  batch.put32(NFTA_SET_FLAGS, NFT_SET_INTERVAL);
  batch.put32(NFTA_SET_KEY_TYPE, v6 ? kTypeV6 : kTypeV4);
  batch.put32(NFTA_SET_KEY_LEN, v6 ? 16 : 4);
  batch.put32(NFTA_SET_ID, v6 ? 2 : 1);
  std::vector<AddressRange> ranges;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ranges),
               [&](const AddressRange& r) { return r.first.isV6() == v6; });
  for (size_t at = 0; at < ranges.size(); at += kElementsPerMessage)
    putElements(batch, table, name,
                std::span(ranges).subspan(at, std::min(kElementsPerMessage, ranges.size() - at)));
}

void putTable(NftBatch& batch, const std::string& name) {
  batch.begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  batch.put(NFTA_TABLE_NAME, name);
  batch.put32(NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
}

void putChain(NftBatch& batch, const std::string& table, const char* chain, bool hooked) {
  batch.begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  batch.put(NFTA_CHAIN_TABLE, table);
  batch.put(NFTA_CHAIN_NAME, std::string(chain));
  if (!hooked) return;
  size_t hook = batch.nest(NFTA_CHAIN_HOOK);
  batch.put32(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
  batch.put32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(kPriority));
  batch.endNest(hook);
  batch.put32(NFTA_CHAIN_POLICY, NF_ACCEPT);
  batch.put(NFTA_CHAIN_TYPE, std::string("filter"));
}

// The destination and port of a rule of the configuration; `v6`: of a rule without a network.
void narrow(NftRule& rule, const StreamRule& wanted, bool v6) {
  if (wanted.network) {
    rule.destinationIn(wanted.network->address.view(), wanted.network->length);
  } else {
    rule.familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
  }
  rule.portsAre(wanted.firstPort, wanted.lastPort);
}

bool concerns(const StreamRule& rule, bool v6) {
  return !rule.network || rule.network->address.isV6() == v6;
}

void putNew(NftBatch& batch, const std::string& table, const Interception& what, bool v6, uint16_t port) {
  for (const StreamRule& r : what.exclude) {
    if (!concerns(r, v6)) continue;
    NftRule rule(batch, table, kNew);
    narrow(rule, r, v6);
    rule.verdict(NFT_RETURN);
  }
  for (const StreamRule& r : what.match) {
    if (!concerns(r, v6)) continue;
    NftRule rule(batch, table, kNew);
    narrow(rule, r, v6);
    ByteView loopback = v6 ? ByteView(kLoopback6) : ByteView(kLoopback4);
    rule.destinationInSet(kSets[v6], v6).routedTo(what.device).proxyTo(loopback, port);
    rule.setMark(what.mark).verdict(NF_ACCEPT);
  }
}

}  // namespace

NftTable::NftTable(const std::string& device)
    : name_("braid-" + device), socket_(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)) {
  if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0)
    throw SystemError(errno, std::string("cannot open a socket for nf_tables: ") + std::strerror(errno));
  int bytes = kSendBytes;
  ::setsockopt(mnl_socket_get_fd(socket_.get()), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

NftTable::~NftTable() {
  remove();
}

void NftTable::set(const Interception& what, bool takeNew, uint16_t portV4, uint16_t portV6) {
  NftBatch batch;
  if (made_) {
    batch.begin(NFT_MSG_DELTABLE, 0);
    batch.put(NFTA_TABLE_NAME, name_);
  }
  putTable(batch, name_);
  putChain(batch, name_, kNew, false);
  putChain(batch, name_, kFirst, true);
  putSet(batch, name_, false, what.destinations);
  putSet(batch, name_, true, what.destinations);
  NftRule(batch, name_, kFirst).interfaceIs(what.device).verdict(NFT_RETURN);
  NftRule(batch, name_, kFirst)
      .protocolIs(IPPROTO_TCP)
      .tcpFlagsAre(kFin | kSyn | kRst | kAck, kSyn)
      .verdict(NFT_JUMP, kNew);
  // ICMP errors find the socket that they are about, too: a destination that cannot be reached is told at once.
  for (int protocol : {int{IPPROTO_TCP}, int{IPPROTO_ICMP}, int{IPPROTO_ICMPV6}}) {
    NftRule rule(batch, name_, kFirst);
    rule.protocolIs(static_cast<uint8_t>(protocol))
        .hasTransparentSocket()
        .setMark(what.mark)
        .verdict(NF_ACCEPT);
  }
  if (takeNew) {
    putNew(batch, name_, what, false, portV4);
    putNew(batch, name_, what, true, portV6);
  }
  batch.end();
  if (int error = send(batch)) fail(error);
  made_ = true;
}

void NftTable::remove() {
  if (!made_) return;
  NftBatch batch;
  batch.begin(NFT_MSG_DELTABLE, 0);
  batch.put(NFTA_TABLE_NAME, name_);
  batch.end();
  send(batch);
  made_ = false;
}

// The kernel has answered when the call that sends returns.
int NftTable::send(NftBatch& batch) {
  ByteView bytes = batch.bytes();
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) < 0) return errno;
  alignas(nlmsghdr) uint8_t buffer[16384];
  int error = 0;
  bool answered = false;
  for (;;) {
    ssize_t got = ::recv(mnl_socket_get_fd(socket_.get()), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
      if (m.nlmsg_type != NLMSG_ERROR || m.nlmsg_len < mnl_nlmsg_size(sizeof(nlmsgerr))) return;
      int code = -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&m))->error;
      if (error == 0) error = code;
      answered |= m.nlmsg_seq == batch.lastSequence();
    });
  }
  return error == 0 && !answered ? EPROTO : error;
}

}  // namespace braid
