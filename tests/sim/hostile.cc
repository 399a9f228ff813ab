// sim_hostile --attack NAME --seed S: measures the goodput of an honest peer beside an attacking
// peer, and alone. --list names the attacks. Ends with one line of JSON.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/sim/hostile_run.h"

int main(int argc, char** argv) {
  std::string attack;
  uint64_t seed = 1;
  bool list = false;
  CLI::App app("Attacks a gateway from a peer that it knows, in virtual time");
  app.add_option("--attack", attack, "which");
  app.add_option("--seed", seed, "decides everything but the CPU time");
  app.add_flag("--list", list, "name the attacks");
  CLI11_PARSE(app, argc, argv);

  if (list) {
    nlohmann::json all = nlohmann::json::object();
    for (const braid::sim::HostileAttack& a : braid::sim::hostileAttacks()) all[a.name] = a.what;
    std::cout << all.dump() << std::endl;
    return 0;
  }
  braid::sim::HostileResult r = braid::sim::hostileRun(attack, seed);
  nlohmann::json result = {{"attack", r.attack},
                           {"seed", seed},
                           {"share", r.share()},
                           {"down_mbit", r.down},
                           {"down_alone_mbit", r.downAlone},
                           {"up_mbit", r.up},
                           {"up_alone_mbit", r.upAlone},
                           {"call_lost", r.callLost},
                           {"datagrams", r.datagrams},
                           {"inner_packets", r.inner},
                           {"pool_most", r.poolMost},
                           {"pool_limit", r.poolLimit},
                           {"hostile_cpu_us", r.hostileMicros},
                           {"drops", r.drops},
                           {"broken", r.broken}};
  std::cout << result.dump() << std::endl;
  return 0;
}
