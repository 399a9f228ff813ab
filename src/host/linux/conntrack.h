#pragma once

#include <cstdint>

namespace braid {

/// Lets the kernel forget the connections whose mark has this value in the bits of `mask`. The next
/// packet of each begins a new one, and the rules of translation are asked again. Throws
/// SystemError.
void forgetConnections(uint32_t mark, uint32_t mask);

}  // namespace braid
