#pragma once

// Subflows, a ledger and a trace for tests of what protects data.

#include <vector>

#include "tests/unit/tunnel/subflow/subflow_bench.h"
#include "tunnel/protect/protection_context.h"

namespace braid {

struct ProtectionBench : SubflowBench, TraceSink {
  ProtectOptions protectOptions;
  RecoveryTrace trace{protectOptions.trace, kSession};
  std::vector<TraceEvent> traced;
  std::optional<ProtectionContext> context;
  Datagram out;

  void SetUp() override {
    SubflowBench::SetUp();
    protectOptions.trace = this;
    context.emplace(
        ProtectionContext{protectOptions, options.recoveryOptions, subflows, ledger, pool, *sealer, trace});
  }
  void onTrace(const TraceEvent& event) override { traced.push_back(event); }
  void onStream(const StreamTrace&) override {}
};

}  // namespace braid
