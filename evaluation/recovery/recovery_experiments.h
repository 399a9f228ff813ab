#pragma once

// The experiments of FUSO and CoFUSO, and of everyday paths, by name.

#include <span>

#include "evaluation/models/figures.h"
#include "evaluation/models/params.h"

namespace braid::sim {

struct Experiment {
  const char* name;
  const char* what;
  Json (*run)(const Params&);
};
std::span<const Experiment> experiments();

Json runTargeted(const Params& params);
Json runTargetedRandom(const Params& params);
Json runResponses(const Params& params);
Json runTracedResponses(const Params& params);
Json runRouters(const Params& params);
Json runFabric(const Params& params);
Json runTimeouts(const Params& params);
Json runIncast(const Params& params);
Json runBulk(const Params& params);
Json runDownloads(const Params& params);
Json runMice(const Params& params);

}  // namespace braid::sim
