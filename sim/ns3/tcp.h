#pragma once

// ns-3's TCP, set up as Braid's own model is.

#include <string>

#include "sim/tcp_params.h"

namespace braid::crosscheck {

/// Where ns-3 offers a choice.
struct Variant {
  std::string reduction =
      "prr";                 ///< how the window falls in a recovery: "prr" (RFC 6937) or "classic" (at once)
  bool leastWindow = false;  ///< DCTCP's window keeps two segments; see Dctcp
};

/// Makes all sockets that are opened from now on like this: ten segments at first, SACK, an ACK for two segments or after
/// 40 ms. Throws std::runtime_error when the control or the reduction has no such name.
void setDefaults(const sim::TcpParams& params, const Variant& variant);

}  // namespace braid::crosscheck
