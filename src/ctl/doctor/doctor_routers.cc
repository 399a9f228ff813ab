#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ctl/doctor/doctor.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/linux/netlink.h"
#include "host/system.h"

namespace braid {
namespace {

std::vector<MuteNeighbour> readMute() {
  std::vector<MuteNeighbour> out;
  NetlinkSocket(0).dump(RTM_GETNEIGH, AF_UNSPEC, [&](const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWNEIGH || mnl_nlmsg_get_payload_len(&message) < sizeof(ndmsg))
      return;
    const auto* entry = static_cast<const ndmsg*>(mnl_nlmsg_get_payload(&message));
    if ((entry->ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) == 0) return;
    forEachAttribute(message, sizeof(ndmsg), [&](const nlattr* attribute) {
      if (mnl_attr_get_type(attribute) != NDA_DST) return;
      ByteView bytes{static_cast<const uint8_t*>(mnl_attr_get_payload(attribute)),
                     mnl_attr_get_payload_len(attribute)};
      if (bytes.size() == 4) out.push_back({Address::v4(bytes), entry->ndm_ifindex});
      if (bytes.size() == 16) out.push_back({Address::v6(bytes), entry->ndm_ifindex});
    });
  });
  return out;
}

// Makes the kernel look for the neighbor's MAC address again. That one was not found may be long
// ago: the kernel asks only when it has a packet for the neighbor.
void askAgain(const MuteNeighbour& neighbour, NetlinkSocket& socket) {
  NetlinkRequest request(RTM_NEWNEIGH, 0);
  auto& entry = request.body<ndmsg>();
  entry.ndm_family = socketFamily(neighbour.address.family);
  entry.ndm_ifindex = neighbour.link;
  entry.ndm_flags = NTF_USE;
  request.put(NDA_DST, neighbour.address);
  socket.request(request.header());  // without the privilege, what the kernel found before counts
}

// An answer comes within milliseconds, but for the moment before it the kernel has none.
std::vector<MuteNeighbour> findMute() {
  std::vector<MuteNeighbour> first = readMute();
  if (first.empty()) return first;
  NetlinkSocket socket(0);
  for (const MuteNeighbour& neighbour : first) askAgain(neighbour, socket);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::vector<MuteNeighbour> then = readMute();
  std::erase_if(first,
                [&](const MuteNeighbour& n) { return std::ranges::find(then, n) == then.end(); });
  return first;
}

}  // namespace

void judgeRouters(const Patient& patient, const std::vector<MuteNeighbour>& mute,
                  DoctorReport& report) {
  for (const UplinkConfig& uplink : patient.config.uplinks) {
    UplinkDecision found = decideUplink(uplink, {}, patient.table, {}, {});
    if (!found.up || isWorking(patient.daemon, uplink.name)) continue;
    std::set<Address> routers;
    if (uplink.gateway == UplinkConfig::Gateway::kAddress)
      routers.insert(uplink.gateways.begin(), uplink.gateways.end());
    for (const DefaultRoute& route : patient.table.defaultRoutes())
      if (route.link == found.link) routers.insert(route.via);
    for (const Address& router : routers) {
      if (std::ranges::find(mute, MuteNeighbour{router, found.link}) == mute.end()) continue;
      report.wrong({"uplink",
                    uplink.name + ": the router " + router.toString() + " does not answer at " +
                        found.interface + (router.isV4() ? " (ARP)" : " (neighbour discovery)"),
                    "nothing leaves by this uplink to peers elsewhere",
                    "see to the router and the line to it; or correct uplinks.gateway, or the "
                    "default route (ip route show dev " +
                        found.interface + ")"});
    }
  }
}

void checkRouters(const Patient& patient, DoctorReport& report) {
  try {
    judgeRouters(patient, findMute(), report);
  } catch (const SystemError& e) {
    report.unknown("uplink", e.what());
  }
}

}  // namespace braid
