#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/flow_kind.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/header.h"

namespace braid {

class Flow;

/// What has become of a data unit.
enum class UnitState : uint8_t {
  kInFlight,
  kLost,       ///< lost, or moved off a silent path: waits in the repair queue
  kDelivered,  ///< by whatever means
  kAbandoned,  ///< given up
};

/// What was sent of a data unit before it was known to be lost.
enum class UnitProtection : uint8_t {
  kNone,
  kCoded,    ///< it is in a coding block, or must not be put into one; it may still be copied
  kCopied,   ///< a copy was sent; no second copy is sent
  kRefused,  ///< no copy may be sent any more
};

/// One unit of a lane that has been sent: an inner packet, or a range of a stream's bytes. It
/// exists from its first datagram until no sent datagram remembers it.
///
/// Only the data tracker (data_tracker.h) creates data units and writes to them. All other code
/// holds a UnitRef, reads it, and tells the data tracker what happened to it.
struct DataUnit {
  Packet packet;         ///< the unit's bytes; empty once delivered or given up
  Flow* flow = nullptr;  ///< the flow of the unit; nullptr once delivered or given up
  Dsn dsn{};             ///< its number in `slot`; for a range of a stream, the offset
  PacketNumber pn{};     ///< of the datagram that last carried it, on `subflow`, copies aside
  Time firstSent;        ///< when its first datagram was sent
  /// By this time the peer's report on the copy or parity of this unit should have arrived.
  Time answerDue = Time::min();
  uint32_t refs = 0;  ///< references: sent datagrams, the repair queue, retain()
  FlowNumber slot{};  ///< flow number on the wire
  /// Its carriers: datagrams in flight with it, on subflows that are not silent.
  uint16_t carriers = 0;
  SubflowId subflow{};  ///< the subflow of the datagram that last carried it, copies aside
  Delivery delivery = Delivery::kTimely;  ///< of its flow, when the unit was first sent
  UnitState state = UnitState::kInFlight;
  UnitProtection protection = UnitProtection::kNone;
  bool moved = false;         ///< the subflow that last carried it has fallen silent
  uint8_t frame = 0;          ///< for a range of a stream: the type of its frame; 0: DATA
  ListLink<DataUnit> ofFlow;  ///< in its flow's list of data that is not done
  ListLink<DataUnit> repair;  ///< in the repair queue

  bool isDone() const { return state == UnitState::kDelivered || state == UnitState::kAbandoned; }
  bool isInFlight() const { return state == UnitState::kInFlight; }
  bool isLost() const { return state == UnitState::kLost; }
  bool isProtected() const { return protection != UnitProtection::kNone; }
  /// A copy of it may still be sent.
  bool mayCopy() const {
    return protection == UnitProtection::kNone || protection == UnitProtection::kCoded;
  }
};

/// A data unit for all code but the data tracker: to read it, and to tell the data tracker of it.
/// Like a pointer it may be null, and is not initialized by default.
class UnitRef {
 public:
  UnitRef() = default;
  UnitRef(std::nullptr_t) : unit_(nullptr) {}

  explicit operator bool() const { return unit_ != nullptr; }
  const DataUnit& operator*() const { return *unit_; }
  const DataUnit* operator->() const { return unit_; }
  bool operator==(const UnitRef&) const = default;

 private:
  friend class DataTracker;
  friend class SentData;

  explicit UnitRef(DataUnit* unit) : unit_(unit) {}

  DataUnit* unit_;
};

/// Writes what precedes the unit on the wire: kDataFrameHeader bytes.
inline void writeUnitHeader(const DataUnit& unit, uint8_t* out) {
  if (unit.frame == 0) return writeDataHeader(unit.slot, unit.dsn, unit.packet.size(), out);
  writeStreamHeader(unit.frame, unit.dsn.value(), unit.packet.size(), out);
}

/// The sent data of a flow: the next numbers to assign, and the list of units that are not done.
/// Only the data tracker writes it.
class SentData {
 public:
  /// Units sent and neither known to be delivered nor given up: those in the list.
  uint64_t unacked() const { return unacked_; }
  /// The oldest (newest) unit of the list; nullptr when the list is empty.
  UnitRef oldest() const { return UnitRef(list_.front()); }
  UnitRef newest() const { return UnitRef(list_.back()); }
  /// The neighbors of a unit in the list, which is in the order of sending; nullptr at the ends.
  static UnitRef newer(const DataUnit& unit) { return UnitRef(List::next(unit)); }
  static UnitRef older(const DataUnit& unit) { return UnitRef(List::previous(unit)); }

 private:
  friend class DataTracker;
  using List = IntrusiveList<DataUnit, &DataUnit::ofFlow>;

  List list_;
  uint64_t unacked_ = 0;
  /// The next number in the flow's slot, for each kind of delivery. A flow that takes the slot over
  /// continues the numbers.
  std::array<Dsn, 3> nextDsn_{};
};

}  // namespace braid
