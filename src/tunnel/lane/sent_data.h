#pragma once

#include <array>
#include <cstdint>

#include "tunnel/lane/datum.h"

namespace braid {

/// What the sender keeps of a flow's data that has left: the numbers it gives, and what is not done. The data
/// ledger alone writes it.
class SentData {
 public:
  /// Packets sent and neither known to be delivered nor given up.
  uint64_t unacked() const { return unacked_; }
  /// The first of them; nullptr when there is none.
  const Datum* oldest() const { return list_.front(); }
  const Datum* newest() const { return list_.back(); }
  /// Its neighbours among them, in the order of their sending; nullptr at the ends.
  static const Datum* newer(const Datum& datum) { return List::next(datum); }
  static const Datum* older(const Datum& datum) { return List::previous(datum); }

 private:
  friend class DataLedger;
  using List = IntrusiveList<Datum, &Datum::ofFlow>;

  List list_;
  uint64_t unacked_ = 0;
  /// The next number of the flow's slot, by how it is delivered. A flow that takes the slot over goes on with its
  /// numbers.
  std::array<Dsn, 3> nextDsn_{};
};

}  // namespace braid
