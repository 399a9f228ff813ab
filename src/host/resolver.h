#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inet/endpoint.h"

namespace braid {

/// "vpn.example.net:4433", kept as text: its addresses may change.
struct HostPort {
  std::string host;
  uint16_t port = 0;
  auto operator<=>(const HostPort&) const = default;
};

/// Turns host names into addresses in its own time: an answer may take many seconds, and nobody waits.
class Resolver {
 public:
  /// The addresses of a name, sorted; empty when it cannot be resolved now.
  using OnResult = std::function<void(const HostPort&, const std::vector<Endpoint>&)>;

  virtual ~Resolver() = default;
  /// Looks a name up; one that is waiting already is not looked up twice.
  virtual void request(const HostPort& name) = 0;
};

}  // namespace braid
