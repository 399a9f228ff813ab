#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"

namespace braid {

std::string pathsText(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "UPLINK", "REMOTE", "STATE", ">RTT", ">MIN RTT", ">QUEUE", ">LOST", "ECN",
               ">WINDOW", ">IN FLIGHT", ">RATE", ">SENT", ">RECEIVED", ">MTU"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add(
          {textOf(peer, "name"), textOf(subflow, "id"), textOf(subflow, "uplink"), textOf(subflow, "remote"),
           textOf(subflow, "state"), formatMilliseconds(numberOf(subflow, "srtt_ms")),
           formatMilliseconds(numberOf(subflow, "min_rtt_ms")),
           formatMilliseconds(numberOf(subflow, "queue_delay_ms")),
           formatShare(countOf(subflow, "lost_packets"), countOf(subflow, "sent_packets")),
           textOf(subflow, "ecn"), bytesOf(subflow, "window_bytes"), bytesOf(subflow, "in_flight_bytes"),
           formatRate(numberOf(subflow, "delivery_bytes_per_s")), bytesOf(subflow, "sent_bytes"),
           bytesOf(subflow, "received_bytes"), textOf(subflow, "mtu_bytes")});
    }
  }
  return table.empty() ? "no subflows\n" : table.toString();
}

}  // namespace braid
