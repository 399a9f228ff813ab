#include "host/linux/nft_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "host/linux/conntrack.h"

namespace braid {

namespace {

// Numbers from which nft(8) knows the type of the addresses in a set (libnftables' TYPE_IPADDR,
// TYPE_IP6ADDR).
constexpr uint32_t kTypeV4 = 7, kTypeV6 = 8;
constexpr size_t kElementsPerMessage = 500;  // keeps the list below its limit of 65,535 bytes

// Advances to the next address; false: there is none.
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

void putElements(NftBatch& batch, const std::string& table, const std::string& set,
                 std::span<const AddressRange> ranges) {
  batch.begin(NFT_MSG_NEWSETELEM, NLM_F_CREATE);
  batch.put(NFTA_SET_ELEM_LIST_TABLE, table);
  batch.put(NFTA_SET_ELEM_LIST_SET, set);
  size_t list = batch.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
  for (const AddressRange& range : ranges) {
    putElement(batch, range.first, false);
    Address behind = range.last;
    if (next(behind)) putElement(batch, behind, true);
  }
  batch.endNest(list);
}

}  // namespace

void putChain(NftBatch& batch, const std::string& table, const std::string& chain,
              const NftHook* hook) {
  batch.begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  batch.put(NFTA_CHAIN_TABLE, table);
  batch.put(NFTA_CHAIN_NAME, chain);
  if (!hook) return;
  size_t place = batch.nest(NFTA_CHAIN_HOOK);
  batch.put32(NFTA_HOOK_HOOKNUM, hook->number);
  batch.put32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(hook->priority));
  batch.endNest(place);
  batch.put32(NFTA_CHAIN_POLICY, NF_ACCEPT);
  batch.put(NFTA_CHAIN_TYPE, std::string(hook->type));
}

void putAddressSet(NftBatch& batch, const std::string& table, const std::string& set, uint32_t id,
                   bool v6, const std::vector<AddressRange>& all) {
  batch.begin(NFT_MSG_NEWSET, NLM_F_CREATE);
  batch.put(NFTA_SET_TABLE, table);
  batch.put(NFTA_SET_NAME, set);
  batch.put32(NFTA_SET_FLAGS, NFT_SET_INTERVAL);
  batch.put32(NFTA_SET_KEY_TYPE, v6 ? kTypeV6 : kTypeV4);
  batch.put32(NFTA_SET_KEY_LEN, v6 ? 16 : 4);
  batch.put32(NFTA_SET_ID, id);
  std::vector<AddressRange> ranges;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ranges),
               [&](const AddressRange& r) { return r.first.isV6() == v6; });
  for (size_t at = 0; at < ranges.size(); at += kElementsPerMessage)
    putElements(batch, table, set,
                std::span(ranges).subspan(at, std::min(kElementsPerMessage, ranges.size() - at)));
}

namespace {

constexpr const char* kFirst = "prerouting";  // called by the kernel
constexpr const char* kNew = "new";           // jumped to for packets that begin a connection
// Called by the kernel; for packets of connections that exist already.
constexpr const char* kOpen = "open";
constexpr const char* kFound = "found";  // jumped to for those that this host has a socket for
// Called by the kernel; for packets that begin a connection, when all others have seen them.
constexpr const char* kLast = "last";
constexpr const char* kGive = "give";  // jumped to from there
constexpr const char* kSets[] = {"destinations4", "destinations6"};
constexpr const char* kClients[] = {"clients4", "clients6"};  // sources of new connections
constexpr const char* kPassed[] = {"passed4", "passed6"};     // new connections let through
// New connections are examined before addresses are translated, so that ports which the host
// forwards (DNAT) are left alone, and after NF_IP_PRI_MANGLE (-150), the usual priority of tables
// that set marks, because the look-up of the route depends on them.
constexpr int32_t kNewPriority = -140;
// Packets of existing connections are examined after that (NF_IP_PRI_NAT_DST is -100), when answers
// to a masqueraded connection have their own destination again. Both priorities are before the
// routing decision, which depends on the mark.
constexpr int32_t kOpenPriority = -90;
// The kernel forwards no packet that has a socket, so a new connection gets one when all others
// have had their say about its mark.
constexpr int32_t kLastPriority = INT32_MAX;
constexpr uint8_t kLoopback4[] = {127, 0, 0, 1};
constexpr uint8_t kLoopback6[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

ByteView loopbackOf(bool v6) {
  return v6 ? ByteView(kLoopback6) : ByteView(kLoopback4);
}

constexpr uint32_t kPassedId = 5;  // the other sets of the table are 1 to 4

// The gateway asks about a connection as soon as its packet has come out of the device.
constexpr uint64_t kPassedMs = 1000;
// A connection that finds no room in the set stays packets. Chosen: a flood of SYNs takes
// about 5 MB of the kernel's memory.
constexpr uint32_t kMostPassed = 32768;
// Numbers of the types in a set's key, as kTypeV4 (TYPE_INET_SERVICE of libnftables), and the bits
// of each.
constexpr uint32_t kTypePort = 13, kTypeBits = 6;

// Writes the set to which the rules add new connections: source, port, destination, port.
void putPassed(NftBatch& batch, const std::string& table, uint32_t id, bool v6) {
  const uint32_t address = v6 ? kTypeV6 : kTypeV4;
  const uint32_t end = address << kTypeBits | kTypePort;
  batch.begin(NFT_MSG_NEWSET, NLM_F_CREATE);
  batch.put(NFTA_SET_TABLE, table);
  batch.put(NFTA_SET_NAME, std::string(kPassed[v6]));
  batch.put32(NFTA_SET_FLAGS, NFT_SET_EVAL | NFT_SET_TIMEOUT);
  batch.put32(NFTA_SET_KEY_TYPE, end << 2 * kTypeBits | end);
  batch.put32(NFTA_SET_KEY_LEN, v6 ? 40 : 16);
  batch.put32(NFTA_SET_ID, id);
  batch.put64(NFTA_SET_TIMEOUT, kPassedMs);
  size_t description = batch.nest(NFTA_SET_DESC);
  batch.put32(NFTA_SET_DESC_SIZE, kMostPassed);
  batch.endNest(description);
}

// Adds the conditions of a configured rule: destination and ports. `v6`: the family for a rule
// without a network.
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

void putNew(NftBatch& batch, const std::string& table, const Interception& what, bool v6,
            uint16_t port) {
  for (const StreamRule& r : what.exclude) {
    if (!concerns(r, v6)) continue;
    NftRule rule(batch, table, kNew);
    narrow(rule, r, v6);
    rule.verdict(NFT_RETURN);
  }
  for (const StreamBarrier& barrier : what.barred) {
    if (barrier.v6 != v6) continue;
    NftRule(batch, table, kNew)
        .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
        .interfaceIs(barrier.interface)
        .verdict(NFT_RETURN);
  }
  for (const StreamPair& pair : what.avoid) {
    if (pair.destination.isV6() != v6) continue;
    NftRule(batch, table, kNew)
        .sourceIn(pair.source.view(), pair.source.bits())
        .destinationIn(pair.destination.view(), pair.destination.bits())
        .verdict(NFT_RETURN);
  }
  for (const StreamRule& r : what.match) {
    if (!concerns(r, v6)) continue;
    auto match = [&](NftRule& rule) {
      narrow(rule, r, v6);
      if (!what.sources.empty()) rule.sourceInSet(kClients[v6], v6);
      rule.destinationInSet(kSets[v6], v6)
          .routedTo(what.device)
          .deliveredWith(what.mark, what.markMask);
    };
    {
      NftRule rule(batch, table, kNew);
      match(rule);
      // The kernel does not forward a packet for which it has a socket: one that waits for the end
      // of an old connection (TIME_WAIT), or for the client's ACK.
      rule.hasTransparentSocket()
          .proxyTo(loopbackOf(v6), port)
          .setMark(what.mark, what.markMask)
          .verdict(NF_ACCEPT);
    }
    NftRule rule(batch, table, kNew);
    match(rule);
    if (what.waits)
      rule.addEndsTo(kPassed[v6], v6).verdict(NFT_RETURN);
    else
      rule.setMark(what.mark, what.markMask).verdict(NF_ACCEPT);
  }
}

// Packets that begin connections, given back by this process: they come in by the loopback
// interface, with the mark. Only a process that may configure networks can send such packets.
void putGivenBack(NftBatch& batch, const std::string& table, const Interception& what, bool v6,
                  uint16_t port) {
  putPassed(batch, table, kPassedId + v6, v6);
  NftRule rule(batch, table, kFirst);
  rule.interfaceIs("lo")
      .markIs(what.mark, what.markMask)
      .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
      .beginsConnection()
      .proxyTo(loopbackOf(v6), port);
  if (what.clearsConnectionMark) rule.setConnectionMark(0, what.markMask);
  rule.verdict(NF_ACCEPT);
}

// Gives new connections to the listeners, if their packets are still routed into the device: others
// may have marked them for a way of their own, or translated their destination (REDIRECT, DNAT),
// since they were chosen. Where a condition fails, the mark is gone by then.
void putLast(NftBatch& batch, const std::string& table, const Interception& what, uint16_t portV4,
             uint16_t portV6) {
  NftRule(batch, table, kLast).beginsConnection().verdict(NFT_JUMP, kGive);
  NftRule(batch, table, kGive).hasTransparentSocket().verdict(NFT_RETURN);
  for (bool v6 : {false, true}) {
    NftRule(batch, table, kGive)
        .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
        .markIs(what.mark, what.markMask)
        .setMark(0, what.markMask)
        .routedTo(what.device)
        .deliveredWith(what.mark, what.markMask)
        .proxyTo(loopbackOf(v6), v6 ? portV6 : portV4)
        .setMark(what.mark, what.markMask)
        .verdict(NF_ACCEPT);
  }
  if (!what.waits) return;
  NftRule(batch, table, kGive)
      .routedTo(what.device)
      .deliveredWith(what.mark, what.markMask)
      .verdict(NFT_RETURN);
  for (bool v6 : {false, true}) {
    NftRule(batch, table, kGive)
        .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
        .removeEndsFrom(kPassed[v6], v6);
  }
}

}  // namespace

void putInterception(NftBatch& batch, const std::string& table, const Interception& what,
                     bool takeNew, uint16_t portV4, uint16_t portV6) {
  NftHook first{NF_INET_PRE_ROUTING, kNewPriority, "filter"},
      open{NF_INET_PRE_ROUTING, kOpenPriority, "filter"},
      last{NF_INET_PRE_ROUTING, kLastPriority, "filter"};
  putChain(batch, table, kNew, nullptr);
  putChain(batch, table, kFound, nullptr);
  putChain(batch, table, kFirst, &first);
  putChain(batch, table, kOpen, &open);
  putChain(batch, table, kGive, nullptr);
  putChain(batch, table, kLast, &last);
  putAddressSet(batch, table, kSets[0], 1, false, what.destinations);
  putAddressSet(batch, table, kSets[1], 2, true, what.destinations);
  putAddressSet(batch, table, kClients[0], 3, false, what.sources);
  putAddressSet(batch, table, kClients[1], 4, true, what.sources);
  if (what.waits) {
    putGivenBack(batch, table, what, false, portV4);
    putGivenBack(batch, table, what, true, portV6);
  }
  NftRule(batch, table, kFirst).interfaceIs(what.device).verdict(NFT_RETURN);
  NftRule(batch, table, kFirst).beginsConnection().verdict(NFT_JUMP, kNew);
  // These rules also apply to packets from the device, because a stream's destination may be behind
  // another peer, and its answers then come from the device. ICMP errors are matched to the socket
  // that they are about, so that an unreachable destination is noticed at once.
  for (int protocol : {int{IPPROTO_TCP}, int{IPPROTO_ICMP}, int{IPPROTO_ICMPV6}}) {
    NftRule rule(batch, table, kOpen);
    rule.protocolIs(static_cast<uint8_t>(protocol))
        .hasTransparentSocket()
        .verdict(NFT_JUMP, kFound);
  }
  // Another proxy's listener for any address is found for every packet to its port. TPROXY has
  // given it only those that are marked, and of these not those that others have marked for a way
  // of their own.
  NftRule(batch, table, kFound)
      .hasSocketForAnyAddress()
      .isMarked()
      .routedTo(what.device)
      .setMark(what.mark, what.markMask)
      .verdict(NF_ACCEPT);
  NftRule(batch, table, kFound).hasSocketForAnyAddress().verdict(NFT_RETURN);
  NftRule(batch, table, kFound).setMark(what.mark, what.markMask).verdict(NF_ACCEPT);
  putLast(batch, table, what, portV4, portV6);
  if (!takeNew) return;
  // Another transparent proxy of the host has taken this connection: TPROXY gives the packet that
  // proxy's socket, which listens. An old connection of Braid's own may have the same ends.
  NftRule(batch, table, kNew).hasFullSocket().hasTransparentSocket().verdict(NFT_RETURN);
  for (const std::string& interface : what.outside)
    NftRule(batch, table, kNew).interfaceIs(interface).verdict(NFT_RETURN);
  putNew(batch, table, what, false, portV4);
  putNew(batch, table, what, true, portV6);
}

std::string passedSet(bool v6) {
  return kPassed[v6];
}

// Each field begins in a 32-bit register of its own.
std::vector<uint8_t> passedKey(const Endpoint& source, const Endpoint& destination) {
  std::vector<uint8_t> key;
  for (const Endpoint& end : {source, destination}) {
    ByteView address = end.address.view();
    key.insert(key.end(), address.begin(), address.end());
    key.insert(key.end(),
               {static_cast<uint8_t>(end.port >> 8), static_cast<uint8_t>(end.port), 0, 0});
  }
  return key;
}

namespace {

constexpr const char* kIn = "prerouting";
constexpr const char* kOut = "postrouting";
constexpr const char* kSourceSets[] = {"sources4", "sources6"};
constexpr const char* kDirectSets[] = {"direct4", "direct6"};
// NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC, the priorities at which destinations and sources are
// translated.
constexpr int32_t kDestinationPriority = -100, kSourcePriority = 100;

NftRule& portsOf(NftRule& rule, const PortForward& f) {
  return rule.protocolIs(f.protocol).portsAre(f.firstPort, f.lastPort);
}

// Forwards a connection to an address of this host to another host. Hosts behind peers use the
// forward by its public address, as others do; the addresses on the tunnel's device stay those of
// this host's own services.
void putForward(NftBatch& batch, const std::string& table, const Translation& what,
                const PortForward& f, const Prefix* from) {
  for (bool outside : {true, false}) {
    NftRule rule(batch, table, kIn);
    rule.familyIs(f.to.isV6() ? NFPROTO_IPV6 : NFPROTO_IPV4);
    outside ? rule.interfaceIsNot(what.device) : rule.interfaceIs(what.device);
    portsOf(rule, f).destinationIsOfThisHost();
    if (!outside) rule.destinationIsNotOfInputInterface();
    if (from) rule.sourceIn(from->address.view(), from->length);
    rule.changeDestination(f.to.view(), f.toPort);
  }
}

// A forwarded connection from one host behind a peer to another gets this host's address.
// Otherwise the answers would stay in the LAN where both hosts are, or be refused as packets from
// one peer to another.
void putHairpin(NftBatch& batch, const std::string& table, const Translation& what) {
  NftRule(batch, table, kOut)
      .interfaceIs(what.device)
      .outInterfaceIs(what.device)
      .destinationWasChanged()
      .masquerade();
}

// Makes the source of a forwarded connection the address that this host has on the tunnel's
// interface.
void putOwnSource(NftBatch& batch, const std::string& table, const Translation& what,
                  const PortForward& f) {
  NftRule rule(batch, table, kOut);
  rule.outInterfaceIs(what.device).destinationIn(f.to.view(), f.to.bits()).protocolIs(f.protocol);
  if (f.toPort) {
    rule.portsAre(f.toPort, f.toPort);
  } else {
    rule.portsAre(f.firstPort, f.lastPort);
  }
  rule.destinationWasChanged().masquerade();
}

void putMasquerade(NftBatch& batch, const std::string& table, const Translation& what, bool v6) {
  uint8_t family = v6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
  NftRule(batch, table, kOut)
      .familyIs(family)
      .interfaceIs(what.device)
      .sourceInSet(kSourceSets[v6], v6)
      .masquerade();
  // The far end of a stream is a socket of this host that connects from the client's address. Its
  // packets come from no interface.
  NftRule(batch, table, kOut)
      .familyIs(family)
      .interfaceIs("")
      .sourceInSet(kSourceSets[v6], v6)
      .sourceIsNotOfThisHost()
      .masquerade();
}

// The networks whose packets leave by the host's own routes while the tunnel is down.
void putDirect(NftBatch& batch, const std::string& table, const Translation& what) {
  for (bool v6 : {false, true}) {
    putAddressSet(batch, table, kDirectSets[v6], 3 + v6, v6, what.direct);
    for (const std::string& uplink : what.uplinks) {
      NftRule(batch, table, kOut)
          .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
          .outInterfaceIs(uplink)
          .destinationInSet(kDirectSets[v6], v6)
          .sourceIsNotOfThisHost()
          .masquerade();
    }
  }
}

}  // namespace

void putTranslation(NftBatch& batch, const std::string& table, const Translation& what) {
  NftHook in{NF_INET_PRE_ROUTING, kDestinationPriority, "nat"},
      out{NF_INET_POST_ROUTING, kSourcePriority, "nat"};
  putChain(batch, table, kIn, &in);
  putChain(batch, table, kOut, &out);
  putAddressSet(batch, table, kSourceSets[0], 1, false, what.sources);
  putAddressSet(batch, table, kSourceSets[1], 2, true, what.sources);
  for (const PortForward& f : what.forwards) {
    if (f.from.empty()) putForward(batch, table, what, f, nullptr);
    for (const Prefix& from : f.from) putForward(batch, table, what, f, &from);
    if (f.ownSource) putOwnSource(batch, table, what, f);
  }
  if (!what.forwards.empty()) putHairpin(batch, table, what);
  if (!what.direct.empty()) {
    NftRule(batch, table, kOut)
        .outInterfaceIs(what.device)
        .connectionMarkIs(0, what.markMask)
        .setConnectionMark(what.tunnelledMark, what.markMask);
  }
  NftRule(batch, table, kOut).outInterfaceIs(what.device).verdict(NFT_RETURN);
  if (!what.direct.empty()) putDirect(batch, table, what);
  if (what.masqueradeV4) putMasquerade(batch, table, what, false);
  if (what.masqueradeV6) putMasquerade(batch, table, what, true);
}

// The name differs from `braid-DEVICE`, which is the table for streams.
NftTranslator::NftTranslator(const std::string& device)
    : table_("braid_nat-" + device, {"cannot translate addresses for `nat` and `forwards`",
                                     "nft_nat, nft_masq, nft_ct and nft_fib_inet"}) {}

void NftTranslator::set(const Translation& what) {
  if (what.isEmpty()) return table_.remove();
  table_.replace(
      [&](NftBatch& batch, const std::string& table) { putTranslation(batch, table, what); });
  tunnelledMark_ = what.direct.empty() ? 0 : what.tunnelledMark;
  markMask_ = what.markMask;
}

void NftTranslator::forgetTunnelled() {
  if (tunnelledMark_ != 0) forgetConnections(tunnelledMark_, markMask_);
}

}  // namespace braid
