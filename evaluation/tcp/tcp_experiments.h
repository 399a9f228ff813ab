#pragma once

// Plain TCP in virtual time, without Braid: the baseline of the papers, in scenarios small enough
// that another simulator can run them, too.

#include <span>

#include "evaluation/models/figures.h"
#include "evaluation/tcp/tcp_params.h"
#include "simnet/tcp/options.h"

namespace braid::sim {

/// The options of the hosts' TCP. Throws std::invalid_argument for unknown names.
tcp::Options tcpOptionsOf(const TcpParams& params);

/// Each host of a fat tree of k = 4 sends to another one during the whole run. A hash chooses a
/// fixed path for each flow's data and one for its ACKs. Reports these paths, so that another
/// simulator can use the same ones.
Json runTcpPermutation(const TcpParams& params);

struct TcpExperiment {
  const char* name;
  const char* what;
  Json (*run)(const TcpParams&);
};
std::span<const TcpExperiment> tcpExperiments();

}  // namespace braid::sim
