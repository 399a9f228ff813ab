#pragma once

// Plain TCP in virtual time, without Braid: what the papers compare with, in scenarios small enough that
// another simulator can run the same.

#include <span>

#include "sim/figures.h"
#include "sim/tcp_params.h"
#include "simnet/tcp/options.h"

namespace braid::sim {

/// How the hosts' TCP behaves. Throws std::invalid_argument for names that there are not.
tcp::Options tcpOptionsOf(const TcpParams& params);

/// Each host of a fat tree of k = 4 sends to another one for as long as it runs. The packets of a flow and its ACKs each
/// keep a way that a hash chooses. Says which ways those were, so that another simulator can take the same.
Json runTcpPermutation(const TcpParams& params);

struct TcpExperiment {
  const char* name;
  const char* what;
  Json (*run)(const TcpParams&);
};
std::span<const TcpExperiment> tcpExperiments();

}  // namespace braid::sim
