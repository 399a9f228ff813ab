#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::sim {

/// What an honest peer of a gateway had while another peer of it attacked, and what that cost the gateway.
struct HostileResult {
  std::string attack;
  // the honest peer's goodput in the time of the attack, and in the same time without it, Mbit/s
  double down = 0, downAlone = 0;
  double up = 0, upAlone = 0;
  uint64_t callLost = 0;  ///< datagrams of an honest call of 250
  // the attack
  uint64_t datagrams = 0;                 ///< that reached the gateway's socket
  uint64_t inner = 0;                     ///< packets of hosts behind the gateway that are part of it
  uint64_t poolMost = 0;                  ///< buffers of the gateway in use, at most
  uint64_t poolLimit = 0;                 ///< that there are
  double hostileMicros = 0;               ///< real CPU time of one hostile datagram or packet, in the gateway
  std::map<std::string, uint64_t> drops;  ///< of the gateway, by cause
  std::string broken;  ///< not empty: what went wrong with the attack itself, so that the run proves nothing

  /// The smaller share of its goodput that is left to the honest peer.
  double share() const;
};

/// Names of the attacks, and what each does.
struct HostileAttack {
  std::string name, what;
};
std::vector<HostileAttack> hostileAttacks();

/// One attack of that name beside an honest peer, and the same without it. All but the CPU time follows from the seed.
HostileResult hostileRun(const std::string& attack, uint64_t seed);

}  // namespace braid::sim
