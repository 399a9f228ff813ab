#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"

namespace braid {

std::string peersText(const nlohmann::json& answer) {
  Table table({"PEER", "STATE", ">FOR", ">SUBFLOWS", ">FLOWS", ">SENT", ">RECEIVED", ">REPAIRED", ">HELD",
               ">MTU", "CIPHER", ">EPOCH", "PIN"});
  for (const auto& peer : listOf(answer, "peers")) {
    bool up = flagOf(peer, "up");
    table.add({textOf(peer, "name"), up ? "up" : "down", up ? formatAge(numberOf(peer, "age_s")) : "-",
               textOf(peer, "subflow_count"), textOf(peer, "flow_count"), bytesOf(peer, "inner_sent_bytes"),
               bytesOf(peer, "inner_received_bytes"), textOf(peer, "retransmitted"),
               bytesOf(peer, "held_bytes"), textOf(peer, "inner_mtu_bytes"), textOf(peer, "cipher"),
               textOf(peer, "key_epoch"), textOf(peer, "pin")});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

}  // namespace braid
