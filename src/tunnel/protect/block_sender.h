#pragma once

// The sender's side of coding blocks (CoFUSO section 4.2): packets in flight are gathered into a block, and the
// block's parities leave one by one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tunnel/protect/protection_block.h"
#include "tunnel/protect/protection_context.h"
#include "tunnel/protect/protection_marks.h"

namespace braid {

/// The blocks whose parities are not all sent. A block is begun for a class of flows (a policy's idle chance)
/// or for one flow (in its turn); its symbols are copied when it begins, so that packets may be acknowledged
/// meanwhile. It ends when its last parity is sent, when nobody needs it any more, or when another takes its
/// place.
///
/// A parity as large as a datagram does not fit one beside its header: what is left over, the tail, leaves next
/// on the same path, beyond the window by that much. There is one tail at most.
class BlockSender {
 public:
  /// The description of a block that a PARITY frame can hold beside an ACK, bytes. Ours.
  static constexpr size_t kMaxParityHeader = 600;

  /// `marks`: of the subflows, by position. Both must outlive it.
  BlockSender(const ProtectionContext& context, std::vector<ProtectionMarks>& marks)
      : context_(context), marks_(marks) {}

  /// Symbols of a block at most: what the peer keeps. 0: it decodes nothing, and no block begins.
  void setMostSymbols(uint64_t symbols) { mostSymbols_ = symbols; }
  uint64_t mostSymbols() const { return mostSymbols_; }

  /// Parities of the block under way that are still to be sent; 0: none is under way. `flow` is nullptr for
  /// the class's idle chance. Ends a block that nobody needs any more.
  size_t paritiesLeft(uint8_t recoveryClass, const Flow* flow, Time now);
  /// Begins a block as the policy chose; the one under way ends. `paths`: what the policy saw. False when no
  /// packet may go into it.
  bool start(uint8_t recoveryClass, const Flow* flow, const Protection& choice,
             std::span<const RecoveryPath> paths, Time now);
  /// The next parity of the block under way. False when there is none, or it cannot be sent on `on`.
  bool sendParity(uint8_t recoveryClass, const Flow* flow, Subflow& on, Datagram& out, Time now);
  /// The rest of the last parity.
  bool pollTail(Datagram& out, Time now);

  /// Blocks begun so far.
  uint64_t begun() const { return begun_; }

 private:
  /// Blocks under way. Ours: a short flow has one of its own beside the idle one.
  static constexpr size_t kOpenBlocks = 8;

  ProtectionBlock* find(uint8_t recoveryClass, const Flow* flow);
  ProtectionBlock& place(uint8_t recoveryClass, const Flow* flow);
  bool isWanted(const ProtectionBlock& block) const;
  void gather(ProtectionBlock& block, const Protection& choice);
  bool addSymbol(ProtectionBlock& block, Subflow& of, const Subflow& on, PacketNumber pn);

  const ProtectionContext& context_;
  std::vector<ProtectionMarks>& marks_;
  std::vector<std::unique_ptr<ProtectionBlock>> blocks_;  ///< as many as were under way at once
  BlockId nextId_{};
  ParityTail tail_;
  uint64_t begun_ = 0;
  uint64_t mostSymbols_ = Params{}.symbols;
};

}  // namespace braid
