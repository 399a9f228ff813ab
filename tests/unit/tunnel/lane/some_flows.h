#pragma once

// Flows without packets of their own, for tests of what others keep of a flow.

#include "tunnel/lane/inner_flows.h"
#include "tunnel/lane/lane.h"

namespace braid {

class SomeFlows final : public Lane {
 public:
  Flow& make(bool reliable = true, uint8_t recoveryClass = 0) {
    FlowKey key;
    key.sport = next_++;
    return *flows_.findOrAdd(*this, key, reliable, recoveryClass, Time{});
  }
  const Packet* prepare(Flow&, Time) override { return nullptr; }
  Packet handOut(Flow&) override { return {}; }

 private:
  uint16_t next_ = 1;
  InnerFlows flows_{{}, 1};
};

}  // namespace braid
