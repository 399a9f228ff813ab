#include "scheduler/rate/coupled_wan.h"

namespace braid {

CoupledWan::CoupledWan(uint64_t datagram, uint64_t initial, ControllerGroup* group)
    : wan_(datagram, initial), group_(group) {
  member_.coupled = false;
  if (group_) group_->join(member_);
}

CoupledWan::~CoupledWan() {
  if (group_) group_->leave(member_);
}

// What the application limited is the path's delay, not its bottleneck's.
void CoupledWan::onAck(const AckSample& ack) {
  if (group_) {
    if (ack.rtt > Duration{} && !ack.appLimited) member_.user.delays.onSample(ack.rtt, ack.now);
    wan_.setSharing(group_->sharing(member_, ack.now));
  }
  wan_.onAck(ack);
}

void CoupledWan::setUsable(bool usable, Time now) {
  if (group_) group_->setUsable(member_, usable, now);
}

void CoupledWan::reset(Time now) {
  member_.user.delays.reset();
  wan_.reset(now);
}

}  // namespace braid
