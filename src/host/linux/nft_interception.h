#pragma once

#include <cstdint>
#include <string>

#include "host/linux/nft_batch.h"
#include "host/stream_host.h"

namespace braid {

/// Chains, sets and rules of a table by which TCP connections come to the listeners at 127.0.0.1 and ::1 with these ports
/// (TPROXY), and the packets of those that are there get a mark. Without `takeNew` no new connections.
void putInterception(NftBatch& batch, const std::string& table, const Interception& what, bool takeNew,
                     uint16_t portV4, uint16_t portV6);

}  // namespace braid
