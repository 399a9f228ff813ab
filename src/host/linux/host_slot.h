#pragma once

#include "host/system.h"

namespace braid {

/// A small number that no other process of this network namespace has. The kernel frees it with the
/// process, however that ends: it is the name of a socket without a file (unix(7), "abstract").
class HostSlot {
 public:
  /// Takes the smallest free number below `count`; when all are taken, the last one.
  explicit HostSlot(unsigned count);

  unsigned number() const { return number_; }

 private:
  UniqueFd socket_;
  unsigned number_ = 0;
};

}  // namespace braid
