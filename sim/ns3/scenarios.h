#pragma once

// What is run in both simulators: docs/evaluation/ns3.md says exactly what each scenario is.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sim/ns3/network.h"
#include "sim/ns3/route.h"
#include "sim/ns3/tcp.h"

namespace braid::crosscheck {

using Json = nlohmann::ordered_json;

/// The ports for that control: dctcp's mark.
inline PortSettings portOf(const TcpSettings& tcp, uint32_t packets, uint32_t threshold) {
  return {.packets = packets,
          .threshold = tcp.control == "dctcp" ? std::optional<uint32_t>(threshold) : std::nullopt};
}

/// One bulk flow over a path that loses data packets at random.
struct LossyPath {
  double rate = 100;  ///< Mbit/s
  double rtt = 20;    ///< ms
  double loss = 0.01;
  double seconds = 60;
  uint32_t queue = 1000;  ///< packets
  TcpSettings tcp;
};
Json run(const LossyPath& settings);

/// Long flows that meet at one port, which marks.
struct DctcpQueue {
  uint32_t senders = 2;
  uint32_t threshold = 20;  ///< packets
  double rate = 1000;       ///< Mbit/s
  double rtt = 100;         ///< us
  double seconds = 1;       ///< after the warm-up
  double warmup = 0.2;      ///< s
  double spread = 1000;     ///< us in which the flows begin
  uint32_t queue = 1000;    ///< packets
  TcpSettings tcp{.control = "dctcp", .minRto = 10};
};
Json run(const DctcpQueue& settings);

/// Responses that meet at one port.
struct Incast {
  uint32_t senders = 20;
  uint64_t bytes = 65536;
  double rate = 10000;      ///< Mbit/s
  double rtt = 24;          ///< us
  double spread = 10;       ///< us in which the responses begin
  uint32_t queue = 100;     ///< packets
  uint32_t threshold = 10;  ///< packets; for dctcp
  TcpSettings tcp{.control = "dctcp", .minRto = 10};
};
Json run(const Incast& settings);

/// Each host of a fat tree sends one long flow to another.
struct Permutation {
  double rate = 1000;       ///< Mbit/s of every link
  double delay = 20;        ///< us of every link, one way
  double seconds = 1;       ///< after the warm-up
  double warmup = 0.1;      ///< s
  double spread = 1000;     ///< us in which the flows begin
  uint32_t queue = 100;     ///< packets
  uint32_t threshold = 10;  ///< packets; for dctcp
  std::vector<Route> routes;
  TcpSettings tcp{.control = "dctcp", .minRto = 10};
};
Json run(const Permutation& settings);

}  // namespace braid::crosscheck
