// Netlink messages in the kernel's format with any content: reads must stay within the message, and
// the table of the host's network must stay consistent. The same bytes are answers of a kernel
// (fake_netlink.h) to the monitor that keeps the table.

#include <linux/rtnetlink.h>

#include <string>
#include <vector>

#include "host/linux/netlink.h"
#include "host/linux/netlink_monitor.h"
#include "host/system.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/fake_netlink.h"

namespace {

using namespace braid;
using fuzz::require;

bool isInet(const Address& a) {
  return a.isV4() || a.isV6();
}

void checkTable(const NetworkTable& table) {
  for (const auto& [index, link] : table.links()) {
    require(link.index == index, "a link with another's index");
    for (const LinkAddress& a : link.addresses)
      require(isInet(a.address), "an address of no family");
  }
  for (const DefaultRoute& route : table.defaultRoutes()) {
    require(route.family != Address::Family::kNone, "a route of no family");
    require(table.hasDefaultRoute(route.link, route.family), "a route that is not found");
  }
}

void monitor(ByteView answers) {
  Reader in(answers);
  fuzz::FakeNetlink kernel(in);
  try {
    NetlinkMonitor monitor;
    checkTable(monitor.table());
    for (Time now{}; now < Time{} + 20s; now += 5s) {
      kernel.notify(monitor.fd());
      for (const NetworkChange& change : monitor.process(now))
        require(!change.text.empty(), "no words");
      checkTable(monitor.table());
    }
  } catch (const SystemError& error) {
    require(!std::string(error.what()).empty(), "an error without words");
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  // A copy with the alignment of the socket's buffer that ends exactly where the bytes end.
  std::vector<uint8_t> bytes(data, data + size);
  NetworkTable table;
  forEachMessage(bytes, [&](const nlmsghdr& message) {
    applyNetlink(message, table);
    if (auto route = parseRoute(message))
      require(isInet(route->spec.destination.address), "no destination");
    if (auto rule = parseRule(message))
      require(rule->spec.family != Address::Family::kNone, "no family");
    if (auto address = parseAddress(message))
      require(isInet(address->address.address), "no address");
  });
  checkTable(table);
  for (const NetworkChange& change : table.changesSince({}))
    require(!change.text.empty(), "no words");
  NetworkTable next = table;
  next.continueFrom(table);
  checkTable(next);
  monitor({data, size});
}
