#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "coding/block.h"
#include "coding/block_encoder.h"
#include "tunnel/wire/numbers.h"

namespace braid {

class Flow;

/// A coding block at the sender, from its first parity until its last one has been sent.
struct ProtectionBlock {
  explicit ProtectionBlock(size_t symbolCapacity) : encoder(symbolCapacity) {}

  BlockDescription description;
  BlockEncoder encoder;
  size_t next = 0;  ///< the parity that comes next
  Time began;
  const Flow* flow = nullptr;  ///< whose block it is; nullptr: of all flows of the class
  uint8_t recoveryClass = 0;

  BlockId id() const { return BlockId(description.block); }
  size_t left() const { return description.parities - next; }
};

/// What did not fit beside a parity's header: it follows on the same path.
struct ParityTail {
  BlockId block{};
  uint8_t index = 0;
  SubflowId subflow{};
  uint16_t offset = 0;
  std::vector<uint8_t> bytes;  ///< empty: there is none
};

}  // namespace braid
