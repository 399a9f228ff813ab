#pragma once

// The subflows of one session.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunnel/subflow/subflow.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Owns the subflows. A subflow stays until the session ends: what has been closed keeps its packet numbers and
/// may be opened again. The number (id) is what the wire says; the position counts the subflows in the order in
/// which they came, and is what schedulers and policies choose by. Both stay as they are.
class SubflowSet {
 public:
  /// Numbers that the wire has.
  static constexpr size_t kMost = 256;

  size_t size() const { return order_.size(); }
  Subflow& operator[](size_t position) const { return *order_[position]; }
  /// In order of their positions.
  std::vector<Subflow*>::const_iterator begin() const { return order_.begin(); }
  std::vector<Subflow*>::const_iterator end() const { return order_.end(); }

  /// nullptr when no subflow has the number.
  Subflow* find(SubflowId id) const {
    return id.value() < table_.size() ? table_[id.value()].subflow.get() : nullptr;
  }
  /// Of a subflow that is there.
  Subflow& at(SubflowId id) const { return *table_[id.value()].subflow; }
  size_t positionOf(SubflowId id) const { return table_[id.value()].position; }
  /// Position of the subflow with the name; names are the initiator's.
  std::optional<size_t> named(const std::string& name) const;

  /// Its number must be free.
  Subflow& add(std::unique_ptr<Subflow> subflow, std::string name = {});

  /// All of them go, and hand the data that they carry back to the ledger.
  void clear();

  bool anyUsable() const;
  /// The one with the smallest smoothed RTT among those that carry data; nullptr when none does.
  Subflow* fastest() const;

 private:
  struct Numbered {
    std::unique_ptr<Subflow> subflow;
    uint8_t position = 0;
  };
  std::vector<Numbered> table_;     ///< by number, up to the largest that was ever taken
  std::vector<Subflow*> order_;     ///< by position
  std::vector<std::string> names_;  ///< by position
};

}  // namespace braid
