#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/intrusive_list.h"
#include "tunnel/lane/flow.h"

namespace braid {

/// The flows whose queues hold something, in classes of about equal size, so that a fat one is found in a few steps:
/// somebody with thousands of flows of a packet each would else make every packet at the byte bound cost a walk along
/// all of them.
class FatQueues {
 public:
  /// What the flow's queue holds has changed.
  void onChange(Flow& flow) {
    uint8_t now = classOf(flow.queue.footprint());
    if (now == flow.fatClass_) return;
    if (flow.fatClass_ > 0) {
      List& list = (*classes_)[flow.fatClass_];
      list.erase(flow);
      if (list.empty()) inUse_[flow.fatClass_ / 64] &= ~(uint64_t{1} << flow.fatClass_ % 64);
    }
    flow.fatClass_ = now;
    if (now == 0) return;
    if (!classes_) classes_ = std::make_unique<Classes>();
    (*classes_)[now].pushBack(flow);
    inUse_[now / 64] |= uint64_t{1} << now % 64;
  }
  /// A flow whose queue takes more than four fifths of the memory that the fattest one takes; nullptr when all are empty.
  Flow* fattest() const {
    for (size_t word = inUse_.size(); word-- > 0;) {
      if (inUse_[word] == 0) continue;
      return (*classes_)[64 * word + 63 - static_cast<size_t>(std::countl_zero(inUse_[word]))].front();
    }
    return nullptr;
  }

 private:
  using List = IntrusiveList<Flow, &Flow::byFat_>;

  /// The last one takes all that is larger, from 448 MB on.
  static constexpr size_t kClasses = 116;

  using Classes = std::array<List, kClasses>;

  /// Four classes between two powers of two; 0: of what is empty.
  static uint8_t classOf(size_t held) {
    if (held < 4) return static_cast<uint8_t>(held);
    auto power = static_cast<size_t>(std::bit_width(held)) - 1;
    return static_cast<uint8_t>(std::min(power << 2 | (held >> (power - 2) & 3), kClasses - 1));
  }

  std::unique_ptr<Classes> classes_;                    ///< 2 KB, from the first packet on
  std::array<uint64_t, (kClasses + 63) / 64> inUse_{};  ///< a bit for each class that is not empty
};

}  // namespace braid
