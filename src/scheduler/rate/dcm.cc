#include "scheduler/rate/dcm.h"

#include "scheduler/rate/lia.h"

namespace braid {

void Dcm::observe(const AckSample& ack) {
  CoupledController::observe(ack);
  marks_.onAck(ack, datagram());
}

void Dcm::grow(const AckSample& ack) {
  setWindow(cwnd() + Lia::increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

void Dcm::onReset() {
  CoupledController::onReset();
  marks_ = {};
}

}  // namespace braid
