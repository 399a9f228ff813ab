// Netlink messages as the kernel sends them, with anything in them: what is read stays within them, and the table of
// the host's network stays one.

#include <linux/rtnetlink.h>

#include <vector>

#include "host/linux/netlink_apply.h"
#include "host/linux/netlink_message.h"
#include "host/linux/netlink_socket.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using fuzz::require;

bool isInet(const Address& a) {
  return a.isV4() || a.isV6();
}

void checkTable(const NetworkTable& table) {
  for (const auto& [index, link] : table.links()) {
    require(link.index == index, "a link with another's index");
    for (const LinkAddress& a : link.addresses) require(isInet(a.address), "an address of no family");
  }
  for (const DefaultRoute& route : table.defaultRoutes()) {
    require(route.family != Address::Family::kNone, "a route of no family");
    require(table.hasDefaultRoute(route.link, route.family), "a route that is not found");
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  // A copy that is aligned as the socket's buffer is, and ends where the bytes end.
  std::vector<uint8_t> bytes(data, data + size);
  NetworkTable table;
  forEachMessage(bytes, [&](const nlmsghdr& message) {
    applyNetlink(message, table);
    if (auto route = parseRoute(message)) require(isInet(route->spec.destination.address), "no destination");
    if (auto rule = parseRule(message)) require(rule->spec.family != Address::Family::kNone, "no family");
    if (auto address = parseAddress(message)) require(isInet(address->address.address), "no address");
  });
  checkTable(table);
  for (const NetworkChange& change : table.changesSince({})) require(!change.text.empty(), "no words");
  NetworkTable next = table;
  next.continueFrom(table);
  checkTable(next);
}
