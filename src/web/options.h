#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inet/addresses.h"

namespace braid {

/// Where the server is reached.
struct HttpPlaces {
  std::vector<Endpoint> tcp;
  /// Paths of Unix sockets, which their user and `group` may use (mode 0660).
  std::vector<std::string> sockets{};
  std::string group{};  ///< empty: the process's
};

/// The command line of braid-web.
struct WebOptions {
  static constexpr uint16_t kPort = 9380;

  std::string socket;  ///< path of the control socket
  HttpPlaces listen;
  std::vector<std::string> hosts;
  std::string token;             ///< empty: none
  std::string certificate, key;  ///< files; empty: no TLS
  std::string logLevel = "info";
};

/// Reads the command line and the files that it names. nullopt: the program ends with `exitCode`;
/// the reason was printed. Throws std::runtime_error with a remedy.
std::optional<WebOptions> readWebOptions(int argc, const char* const* argv, int& exitCode);

/// Says what is unsafe: listening at an address other than loopback without both a token and TLS.
/// Empty: it is safe. A Unix socket is safe: its file's owner and mode decide
/// which users may connect.
std::string dangerOf(const WebOptions& options);

/// Reads a file of at most 64 KiB that only its owner may read, or that is one of this process's
/// credentials. Throws std::runtime_error with a remedy that names `option`.
std::string readSecretFile(const std::string& option, const std::string& path);

}  // namespace braid
