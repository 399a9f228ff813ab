#pragma once

// ns-3's TCP, configured like Braid's own TCP model.

#include <string>

#include "evaluation/tcp/tcp_params.h"

namespace braid::crosscheck {

/// Choices that ns-3 offers.
struct Variant {
  std::string reduction =
      "prr";  ///< how the window falls in a recovery: "prr" (RFC 6937) or "classic" (at once)
  bool leastWindow = false;  ///< DCTCP's window keeps two segments; see Dctcp
};

/// Sets the defaults for all sockets opened from now on: initial window of ten segments, SACK, an
/// ACK for every two segments or after 40 ms. Throws std::runtime_error for an unknown control or
/// reduction.
void setDefaults(const sim::TcpParams& params, const Variant& variant);

}  // namespace braid::crosscheck
