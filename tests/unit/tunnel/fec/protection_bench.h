#pragma once

// Subflows, a data tracker and a trace for the tests of proactive recovery.

#include <vector>

#include "tests/unit/tunnel/subflow/subflow_bench.h"
#include "tunnel/fec/cursors.h"

namespace braid {

struct ProtectionBench : SubflowBench, TraceSink {
  ProtectOptions protectOptions;
  TraceSink* sink = this;
  RecoveryTrace trace{sink, kSession};
  std::vector<TraceEvent> traced;
  std::optional<ProtectionContext> context;
  Datagram out;

  void SetUp() override {
    SubflowBench::SetUp();
    context.emplace(ProtectionContext{protectOptions, options.recoveryOptions, subflows,
                                      dataTracker, pool, *sealer, trace});
  }
  void onTrace(const TraceEvent& event) override { traced.push_back(event); }
  void onStream(const StreamTrace&) override {}
};

}  // namespace braid
