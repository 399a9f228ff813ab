#pragma once

// ns-3's TCP, set up as Braid's own model is.

#include <string>

#include "sim/tcp_params.h"

namespace braid::crosscheck {

/// Makes all sockets that are opened from now on like this: ten segments at first, SACK, an ACK for two segments or after
/// 40 ms. `reduction`: how the window falls in a recovery, "prr" (RFC 6937) or "classic" (at once). Throws
/// std::runtime_error when the control or the reduction has no such name.
void setDefaults(const sim::TcpParams& params, const std::string& reduction);

}  // namespace braid::crosscheck
