#pragma once

#include <CLI/CLI.hpp>

#include "evaluation/tcp/tcp_params.h"

namespace braid::sim {

/// The command-line options that braid-sim and ns3_check share. Each defines `--control` itself.
inline void addTcpOptions(CLI::App& app, TcpParams& params) {
  app.add_option("--seed", params.seed, "of losses, starts and routes");
  app.add_option("--rate", params.rate, "of every link, bit/s (lossy-path 10e6, else 1e9)")
      ->check(CLI::PositiveNumber);
  app.add_option("--rtt", params.rtt,
                 "without queues and transmission, us (lossy-path 40000, timeouts 280, else 100)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", params.seconds,
                 "lossy-path (60), dctcp-queue (2), permutation (0.4): from the first SYN on")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--senders", params.senders, "dctcp-queue (2), incast (20)")
      ->check(CLI::Range(1, 250));
  app.add_option("--queue", params.queue,
                 "packets that wait at a port (dctcp-queue 1000, else 100)")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--loss", params.loss, "lossy-path, timeouts: share of data packets lost")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--threshold", params.threshold,
                 "dctcp: marks what finds more than K packets waiting");
  app.add_option("--bytes", params.bytes, "incast: of each sender; timeouts: of each flow")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--spread", params.spread,
                 "us in which flows begin (incast 10, dctcp-queue and permutation 10000)")
      ->check(CLI::PositiveNumber);
  app.add_option("--min-rto", params.minRto, "ms")->check(CLI::Range(0.1, 10000.0));
  app.add_option("--ack-delay", params.ackDelay, "ms that a delayed ACK waits")
      ->check(CLI::Range(0.1, 500.0));
  app.add_flag("!--no-delayed-acks", params.delayedAcks, "each segment is acknowledged at once");
  app.add_flag("!--no-timestamps", params.timestamps, "RFC 7323 off");
}

}  // namespace braid::sim
