#pragma once

#include <cstdint>

namespace braid {

/// Lets the kernel forget the connections whose mark has this value in the bits of `mask`: their
/// next packet begins a new one, for which addresses are translated anew. Throws SystemError.
void forgetConnections(uint32_t mark, uint32_t mask);

}  // namespace braid
