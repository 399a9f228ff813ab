#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "tunnel/status.h"

namespace braid {

namespace {

// "up", "down", and of a group "up, in use", "up, standby".
std::string stateText(const nlohmann::json& peer) {
  std::string text = flagOf(peer, kKeyOf<&PeerStatus::up>) ? "up" : "down";
  nlohmann::json group = fieldOf(peer, kKeyOf<&PeerStatus::group>);
  if (!group.is_string() || group.get<std::string>().empty()) return text;
  return text + (flagOf(peer, kKeyOf<&PeerStatus::inUse>) ? ", in use" : ", standby");
}

}  // namespace

std::string peersText(const nlohmann::json& answer) {
  Table table({"PEER", "STATE", ">FOR", ">SUBFLOWS", ">FLOWS", ">SENT", ">RECEIVED", ">REPAIRED", ">HELD",
               ">MTU", "CIPHER", ">KEYS", ">EPOCH", "PIN"});
  for (const auto& peer : listOf(answer, "peers")) {
    bool up = flagOf(peer, kKeyOf<&PeerStatus::up>);
    table.add({cell<&PeerStatus::name>(peer), stateText(peer), up ? cell<&PeerStatus::age>(peer) : "-",
               cell<&PeerStatus::subflows>(peer), cell<&PeerStatus::flowCount>(peer),
               cell<&CarriedCounts::sentBytes>(peer), cell<&CarriedCounts::receivedBytes>(peer),
               cell<&PeerStatus::retransmitted>(peer), cell<&PeerStatus::heldBytes>(peer),
               textOf(peer, kKeyOf<&PeerStatus::innerMtu>), cell<&PeerStatus::cipher>(peer),
               up ? cell<&PeerStatus::keyAge>(peer) : "-", cell<&PeerStatus::keyEpoch>(peer),
               cell<&PeerStatus::pin>(peer)});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

}  // namespace braid
