#pragma once

// What braid-sim and ns3_check share: runs one experiment by its name, once for each policy or
// controller.

#include <cstdlib>  // __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace braid::sim {

/// The experiments as the help lists them.
template <typename Experiments>
std::string listOf(const Experiments& experiments) {
  std::string list = "one of:";
  for (const auto& e : experiments) list += std::string("\n  ") + e.name + ": " + e.what;
  return list;
}

/// The experiment of that name; throws std::runtime_error when there is none.
template <typename Experiments>
const auto& byName(const Experiments& experiments, const std::string& name) {
  for (const auto& e : experiments) {
    if (name == e.name) return e;
  }
  throw std::runtime_error("no experiment " + name);
}

/// Runs the experiment with `params.*variant` set to each of `values` and prints one JSON object
/// for each, in which the value is called `kind`.
template <typename Experiment, typename Params>
void runEach(const Experiment& experiment, const char* kind, std::string Params::*variant,
             const std::vector<std::string>& values, Params params) {
  for (const std::string& value : values) {
    params.*variant = value;
    nlohmann::ordered_json line = {
        {"experiment", experiment.name}, {kind, value}, {"seed", params.seed}};
    line.update(experiment.run(params));
    std::cout << line.dump() << std::endl;
  }
}

/// Makes glibc keep freed memory instead of returning it to the kernel. Otherwise, in an experiment
/// that makes a gateway for each flow, the kernel would have to clear pages all the time.
inline void keepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kMost = 1 << 30, kLargest = 32 << 20;  // bytes; glibc documents no larger block
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kMost);
#endif
}

/// Runs `work` and returns the program's exit status. Prints the error on stderr if it throws.
template <typename Work>
int runProgram(const char* program, Work work) {
  keepFreedMemory();
  try {
    work();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << program << ": " << e.what() << "\n";
    return 1;
  }
}

}  // namespace braid::sim
