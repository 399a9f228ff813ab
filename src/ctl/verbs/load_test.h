#pragma once

// Evaluates a load test of paths (`braidctl test`) from the daemon's answers to {"cmd":"test"}
// while it ran.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace braid {

/// One path, or all paths of the test together, at one time: sums over its subflows.
struct LoadSample {
  double at = 0;      ///< seconds, by any clock
  unsigned open = 0;  ///< subflows that have a route
  uint64_t delivered = 0, sentBytes = 0;
  uint64_t sentPackets = 0, lostPackets = 0;
  double srttMs = 0, leastRttMs = 0;  ///< of the slowest subflow; 0: unknown
};

/// Sums the answer's subflows of `path`. An empty `path` means all paths except those in `left`,
/// which are not measured.
LoadSample loadSample(const nlohmann::json& answer, const std::string& path,
                      const std::vector<std::string>& left, double at);

/// Returns "bytes_per_s" (delivered, without the start), "loss" (share of the packets),
/// "idle_rtt_ms" (of the first sample), "loaded_rtt_ms" (the largest), "sent_bytes" and "seconds".
/// `samples`: in order of time, the first from before the test and the last from after its end.
/// `ended`: index of the last sample taken while it ran. When a subflow ends meanwhile, the result
/// is that of the time before.
nlohmann::json loadResult(std::span<const LoadSample> samples, size_t ended);

/// The runs as a table: each is {"path", and the members of loadResult()}. One with "state" was not
/// measured because the path was down; one without throughput has had no answer.
std::string loadText(const nlohmann::json& result);

/// "[#####     ] wifi  52.1 Mbit/s": `part` from 0 to 1.
std::string progressBar(const std::string& what, double part, double bytesPerSecond);

}  // namespace braid
