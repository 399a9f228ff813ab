#include "scheduler/rate/lia.h"

#include <algorithm>

namespace braid {

double Lia::increase(const ControllerGroup& group, double window, double acked, double datagram) {
  double total = std::max(group.totalWindow(), window);
  return acked * datagram * std::min(group.alpha() / total, 1 / window);
}

void Lia::grow(const AckSample& ack) {
  setWindow(cwnd() + increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

}  // namespace braid
