#include "evaluation/models/params.h"

namespace braid::sim {

void Loss::apply(LinkOptions& link) const {
  if (burst <= 1) {
    link.loss = rate;
    return;
  }
  // In the bad state every packet is lost. A stay in it lasts `burst` packets on average.
  double leave = 1 / burst;
  link.bursts = {.goodToBad = leave * rate / (1 - rate), .badToGood = leave};
}

TunnelOptions tunnelOptions(const Params& params, std::string_view controller,
                            size_t initialWindow) {
  TunnelOptions o;
  o.outerMtu = o.maxOuterMtu = 1500;
  o.controller = params.controller.empty() ? std::string(controller) : params.controller;
  if (!params.scheduler.empty()) o.scheduler = params.scheduler;
  o.initialWindow = initialWindow;
  o.recovery = params.policy;
  o.minRto = fromSeconds(params.minRto / 1000);
  if (params.mMax > 0) o.recoveryOptions.mMax = params.mMax;
  o.recoveryOptions.codingRate = params.codingRate;
  if (params.testbed && params.policy == "cofuso") {
    o.recoveryOptions.mMax = 1;
    o.recoveryOptions.kMax = 30;
    o.recoveryOptions.alpha1 = 0.05;
    o.recoveryOptions.beta1 = 0.95;
  }
  return o;
}

}  // namespace braid::sim
