// What the kernel answers about its packet filter, its connections and its routes: any bytes must
// give a copy of the filter or an error with words, and the copy must say of any packet what drops
// it, soon.
//
// Input: a byte for the question, three bytes for a packet, and the answers (fake_netlink.h).

#include <linux/rtnetlink.h>

#include <optional>
#include <string>
#include <vector>

#include "host/linux/conntrack.h"
#include "host/linux/netlink.h"
#include "host/linux/nft_firewall.h"
#include "host/linux/nft_rules.h"
#include "host/linux/nft_table.h"
#include "host/system.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/fake_netlink.h"

namespace {

using namespace braid;
using fuzz::require;

NftPacket packetOf(Reader& in) {
  const uint8_t how = in.u8();
  const uint16_t number = in.u16();
  auto has = [&](int bit) { return (how >> bit & 1) != 0; };
  NftPacket packet;
  packet.hook = has(0) ? NftPacket::Hook::kForward : NftPacket::Hook::kInput;
  packet.family = has(1) ? Address::Family::kV6 : Address::Family::kV4;
  packet.protocol = has(2) ? 6 : 17;
  packet.isAnswer = has(3);
  packet.isTranslated = has(4);
  packet.isForeign = has(5);
  packet.mark = has(6) ? number : 0;
  packet.port = has(6) ? 443 : number;
  packet.in = "eth0";
  packet.inIndex = 2;
  packet.out = "braid0";
  packet.outIndex = 3;
  packet.destination = Address::parse(has(1) ? "2001:db8::7" : "192.0.2.7");
  if (has(7)) packet.source = Address::parse(has(1) ? "fd00::9" : "10.1.2.3");
  return packet;
}

void readFilter(const NftPacket& packet) {
  NftFirewall wall;
  const std::vector<NftDrop> drops = wall.drops(packet);
  require(drops == wall.drops(packet), "two answers to one question");
  for (const NftDrop& drop : drops) {
    require(wall.hasChain(drop.family, drop.table, drop.chain), "dropped by no chain");
    require(drop.byPolicy || wall.hasChain(drop.family, drop.table, drop.within),
            "dropped by a rule of no chain");
    require(!drop.toString().empty(), "dropped without words");
  }
}

void useTable(const NftPacket& packet) {
  NftTable table("braid-test", {"cannot test", "none"}, NftTable::Found::kReplace);
  table.exists();
  const Address source = packet.source.value_or(*packet.destination);
  table.hasElement(passedSet(source.isV6()),
                   passedKey({source, packet.port}, {*packet.destination, 443}));
  Interception what;
  table.replace([&](NftBatch& batch, const std::string& name) {
    putInterception(batch, name, what, packet.isForeign, packet.port, 8080);
  });
  table.remove();
}

void readRoutes() {
  NetlinkSocket socket(0);
  try {
    for (const FoundRule& rule : readRules(socket))
      require(rule.spec.family != Address::Family::kNone, "a rule of no family");
    socket.dump(RTM_GETROUTE, AF_UNSPEC, [](const nlmsghdr& message) {
      if (auto route = parseRoute(message))
        require(route->spec.destination.address.bits() > 0, "a route to nowhere");
    });
    socket.dump(RTM_GETADDR, AF_UNSPEC, [](const nlmsghdr& message) {
      if (auto address = parseAddress(message))
        require(address->address.address.bits() > 0, "an address of no family");
    });
  } catch (const SystemError&) {  // the socket can be used all the same
  }
  RouteSpec route;
  route.destination = *Prefix::parse("10.1.0.0/16");
  RuleSpec rule;
  rule.family = Address::Family::kV4;
  NetlinkRequest requests[] = {routeRequest(RTM_NEWROUTE, route, 2), ruleRequest(RTM_DELRULE, rule),
                               addressRequest(RTM_NEWADDR, {*Address::parse("10.99.0.2"), 30}, 2)};
  for (NetlinkRequest& request : requests)
    require(socket.request(request.header()).error >= 0, "an error that is none of the kernel's");
  socket.hear([](const nlmsghdr& message) {
    require(message.nlmsg_type >= NLMSG_MIN_TYPE, "a message about the socket is handed on");
  });
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  Reader in({data, size});
  const uint8_t question = in.u8();
  const NftPacket packet = packetOf(in);
  fuzz::FakeNetlink kernel(in);
  try {
    switch (question % 8) {
      case 0:
        useTable(packet);
        break;
      case 1:
        forgetConnections(0x42, 0xff);
        break;
      case 2:
        NftFirewall::generation();
        break;
      case 4:
        readRoutes();
        break;
      default:
        readFilter(packet);
    }
  } catch (const SystemError& error) {
    require(!std::string(error.what()).empty(), "an error without words");
  }
}
