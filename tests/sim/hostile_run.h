#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::sim {

/// The result of an attack: the service that an honest peer of a gateway got while another peer
/// attacked, and the cost for the gateway.
struct HostileResult {
  std::string attack;
  // the honest peer's goodput in the time of the attack, and in the same time without it, Mbit/s
  double down = 0, downAlone = 0;
  double up = 0, upAlone = 0;
  uint64_t callLost = 0;  ///< datagrams of an honest call of 250
  // the attack
  uint64_t datagrams = 0;    ///< hostile datagrams that reached the gateway's socket
  uint64_t inner = 0;        ///< packets of the attack from hosts behind the gateway
  uint64_t poolMost = 0;     ///< largest number of the gateway's buffers in use
  uint64_t poolLimit = 0;    ///< that there are
  double hostileMicros = 0;  ///< real CPU time of one hostile datagram or packet, in the gateway
  std::map<std::string, uint64_t> drops;  ///< drops of the gateway, by cause
  std::string broken;  ///< not empty: what went wrong with the attack itself, so that the run
                       ///< proves nothing

  /// The honest peer's goodput under attack as a share of that without; the smaller of both
  /// directions.
  double share() const;
};

/// Names of the attacks, and what each does.
struct HostileAttack {
  std::string name, what;
};
std::vector<HostileAttack> hostileAttacks();

/// Runs the attack of that name beside an honest peer, and the honest peer without it. The seed
/// decides everything except the CPU time.
HostileResult hostileRun(const std::string& attack, uint64_t seed);

}  // namespace braid::sim
