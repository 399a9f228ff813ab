#pragma once

// T-RACKs' simulations (section V) rerun with our shim: docs/evaluation.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/figures.h"
#include "sim/rack_tree.h"

namespace braid::sim {

struct RackParams {
  std::string shim = "off";         ///< see shimNames()
  std::string scheme = "droptail";  ///< queue and TCP: disciplineOf()
  uint64_t seed = 1;
  size_t flows = 20;                  ///< in all, large ones too
  bool large = false;                 ///< CASE 2: a quarter of them are large (small : large = 3)
  std::string setup = "established";  ///< or "handshake": a SYN at the flow's start, which counts
  size_t rounds = 5;
  uint64_t bytes = 14600;  ///< of a small flow: 10 MSS
  uint32_t alpha = 10;
  std::optional<uint32_t> gamma;  ///< bytes; unset: the default
  double jitter = 0;              ///< us
  double load = 0.5;              ///< websearch: of the bottleneck, (0, 1)
  double seconds = 10;            ///< websearch: of arrivals
};

/// Where a shim stands and what it may do: "off"; "sender", with the default options; "paper", the duplicate
/// ACKs of Algorithms 1 and 2 alone; "both", at the receiver too; "cache", at the sender, with the segments
/// kept.
std::span<const char* const> shimNames();

struct RackExperiment {
  const char* name;
  const char* what;
  Json (*run)(const RackParams&);
};
std::span<const RackExperiment> rackExperiments();

/// The tree that the parameters describe.
RackTreeOptions treeOf(const RackParams& params);

}  // namespace braid::sim
