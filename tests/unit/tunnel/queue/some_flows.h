#pragma once

// Flows without packets, for tests of other classes' per-flow state.

#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"

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
  InnerFlowTable flows_{{}, 1};
};

}  // namespace braid
