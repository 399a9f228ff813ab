#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inet/endpoint.h"

namespace braid {

/// How braid-web was called.
struct WebOptions {
  static constexpr uint16_t kPort = 9380;

  std::string socket;  ///< path of the control socket
  std::vector<Endpoint> listen;
  std::vector<std::string> hosts;
  std::string token;             ///< empty: none
  std::string certificate, key;  ///< files; empty: no TLS
  std::string logLevel = "info";
};

/// Reads the command line and what it names. nullopt: the program ends with `exitCode`, and has said why. Throws
/// std::runtime_error with a remedy.
std::optional<WebOptions> readWebOptions(int argc, const char* const* argv, int& exitCode);

/// What must not be: anything but a loopback address without both a token and TLS. Empty: it is safe.
std::string dangerOf(const WebOptions& options);

}  // namespace braid
