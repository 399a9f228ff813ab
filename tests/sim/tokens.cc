// sim_tokens --runs N --seed S: attacks by peers that have the session keys: they guess path
// tokens, answer challenges from other addresses, and name a victim's address as their own. Does N
// runs with the seeds S, S+1, ... and prints one line of JSON with the attackers' gains.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/sim/tokens_run.h"

int main(int argc, char** argv) {
  uint64_t runs = 100;
  uint64_t seed = 1;
  CLI::App app("Attacks the proof of addresses in virtual time");
  app.add_option("--runs", runs, "how many runs");
  app.add_option("--seed", seed, "seed of the first run");
  CLI11_PARSE(app, argc, argv);

  constexpr uint64_t kNumbers = 1000;
  braid::sim::TokensResult sum;
  nlohmann::json broken = nlohmann::json::array();
  nlohmann::json offending = nlohmann::json::array();
  for (uint64_t i = 0; i < runs; ++i) {
    braid::sim::TokensResult r = braid::sim::tokensRun(seed + i);
    if (!r.broken.empty()) broken.push_back("seed " + std::to_string(seed + i) + ": " + r.broken);
    if (r.predictedAccepted + r.strayAccepted + r.bytesBeyond > 0) offending.push_back(seed + i);
    sum.predictedAccepted += r.predictedAccepted;
    sum.strayAccepted += r.strayAccepted;
    sum.bytesBeyond += r.bytesBeyond;
    sum.tokensSeen += r.tokensSeen;
    sum.predictions += r.predictions;
    sum.strayAnswers += r.strayAnswers;
    sum.honestMoves += r.honestMoves;
    sum.unprovenRoutes += r.unprovenRoutes;
    sum.bytesFromThere += r.bytesFromThere;
    sum.bytesToThere += r.bytesToThere;
  }
  nlohmann::json summary = {{"runs", runs},
                            {"first_seed", seed},
                            {"predicted_accepted", sum.predictedAccepted},
                            {"stray_accepted", sum.strayAccepted},
                            {"bytes_beyond", sum.bytesBeyond},
                            {"offending_seeds", offending},
                            {"broken", broken},
                            {"tokens_seen", sum.tokensSeen},
                            {"predictions", sum.predictions},
                            {"stray_answers", sum.strayAnswers},
                            {"honest_moves", sum.honestMoves},
                            {"unproven_addresses", sum.unprovenRoutes},
                            {"bytes_from_unproven", sum.bytesFromThere},
                            {"bytes_to_unproven", sum.bytesToThere},
                            {"splitmix_foreseen", braid::sim::foreseenOfRandom(kNumbers)},
                            {"splitmix_numbers", kNumbers}};
  std::cout << summary.dump() << std::endl;
  return 0;
}
