#include "sim/experiment.h"

#include <array>

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

std::span<const Experiment> experiments() {
  static constexpr auto kExperiments = std::to_array<Experiment>({
      {"targeted", "CoFUSO 6.1.1: 29 packets, one of the first subflow's lost in turn",
       runTargeted},
      {"targeted-random", "the same, one of all 29 lost at random", runTargetedRandom},
      {"responses", "CoFUSO 6.1.2: web responses over two 50 ms paths, one lossy", runResponses},
      {"traced-responses", "the same, and of each when protection hit a loss and what room it had",
       runTracedResponses},
      {"routers", "CoFUSO 6.2.2: web responses over a mesh of routers with lossy links",
       runRouters},
      {"fabric", "FUSO VI-B.1: small requests over three paths of a data centre, one lossy",
       runFabric},
      {"timeouts", "FUSO IV: flows of 100 KB over three paths, one loses towards the client",
       runTimeouts},
      {"incast", "FUSO VI-B.3: many senders to one receiver", runIncast},
      {"bulk", "one download that fills WiFi and LTE", runBulk},
      {"downloads", "downloads of 500 KB one after the other on WiFi and LTE", runDownloads},
      {"mice", "16 KB flows beside an elephant on WiFi and LTE", runMice},
  });
  return kExperiments;
}

}  // namespace braid::sim
