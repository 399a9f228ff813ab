#pragma once

// The sender's side of coding blocks (CoFUSO section 4.2): a block is formed from packets in
// flight, and its parities are sent one by one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "coding/block_encoder.h"
#include "coding/symbols.h"
#include "tunnel/fec/cursors.h"
#include "tunnel/wire/header.h"

namespace braid {

class Flow;

/// A coding block at the sender, from its first parity until its last one has been sent.
struct ProtectionBlock {
  explicit ProtectionBlock(size_t symbolCapacity) : encoder(symbolCapacity) {}

  BlockDescription description;
  BlockEncoder encoder;
  size_t next = 0;  ///< index of the parity to be sent next
  Time began;
  const Flow* flow = nullptr;  ///< flow that the block protects; nullptr: all flows of the class
  uint8_t recoveryClass = 0;
  size_t of = 0;  ///< position of the subflow that sent most of its packets

  BlockId id() const { return BlockId(description.block); }
  size_t left() const { return description.parities - next; }
};

/// The rest of a parity that did not fit one datagram with its header. It is sent on the same path.
struct ParityTail {
  BlockId block{};
  uint8_t index = 0;
  SubflowId subflow{};
  uint16_t offset = 0;
  std::vector<uint8_t> bytes;  ///< empty: there is none
};

/// The blocks whose parities have not all been sent. A block is begun for a class of flows (when
/// nothing new waits) or for one flow (in its turn). Its symbols are copied when it begins, so that
/// its packets may be acknowledged meanwhile. It ends when its last parity has been sent, when no
/// packet of it is missing any more, or when another block replaces it.
///
/// A parity that is as large as a datagram does not fit one together with its header. The rest, the
/// tail, is sent next on the same path, beyond the window by that much. There is at most one tail.
class FecSender {
 public:
  /// Maximum number of bytes that the description of a block may take in a PARITY frame beside an
  /// ACK.
  static constexpr size_t kMaxParityHeader = 600;

  /// `marks`: the cursors of the subflows, by position. Both arguments must outlive this object.
  FecSender(const ProtectionContext& context, std::vector<ProtectionCursors>& marks)
      : context_(context), marks_(marks) {}

  /// Sets the most symbols of a block: what the peer keeps. 0: the peer cannot decode, so no block
  /// begins.
  void setMostSymbols(uint64_t symbols) { mostSymbols_ = symbols; }
  uint64_t mostSymbols() const { return mostSymbols_; }

  /// Parities of the block under way that are still to be sent; 0: none is under way. `flow`:
  /// nullptr for the block of the whole class. Ends a block that nobody needs any more.
  size_t paritiesLeft(uint8_t recoveryClass, const Flow* flow, Time now);
  /// The position of the subflow that sent most packets of the block under way.
  size_t protectedPath(uint8_t recoveryClass, const Flow* flow) const;
  /// Begins the block that the policy chose; the one under way ends. `paths`: what the policy saw.
  /// False when no packet may be put into it.
  bool start(uint8_t recoveryClass, const Flow* flow, const Protection& choice,
             std::span<const RecoveryPath> paths, Time now);
  /// Sends the next parity of the block under way. False when there is none, or it cannot be sent
  /// on `on`.
  bool sendParity(uint8_t recoveryClass, const Flow* flow, Subflow& on, Datagram& out, Time now);
  /// Sends the tail of the last parity; false when there is none.
  bool pollTail(Datagram& out, Time now);

  /// Blocks begun since the session began.
  uint64_t begun() const { return begun_; }

 private:
  /// Maximum number of blocks under way. Chosen: a short flow has a block of its own beside that of
  /// its class.
  static constexpr size_t kOpenBlocks = 8;

  ProtectionBlock* find(uint8_t recoveryClass, const Flow* flow) const;
  ProtectionBlock& place(uint8_t recoveryClass, const Flow* flow);
  bool isWanted(const ProtectionBlock& block) const;
  void gather(ProtectionBlock& block, const Protection& choice);
  void gatherFrom(size_t position, ProtectionBlock& block, size_t most, const Protection& choice);
  bool addSymbol(ProtectionBlock& block, Subflow& of, const Subflow& on, PacketNumber pn);

  const ProtectionContext& context_;
  std::vector<ProtectionCursors>& marks_;
  std::vector<std::unique_ptr<ProtectionBlock>> blocks_;  ///< at most kOpenBlocks
  BlockId nextId_{};
  ParityTail tail_;
  uint64_t begun_ = 0;
  uint64_t mostSymbols_ = Params{}.symbols;
};

}  // namespace braid
