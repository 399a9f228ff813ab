#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// What attackers who have the keys of a session got out of it in one run, and what they tried.
struct TokensResult {
  // offences
  uint64_t predictedAccepted = 0;  ///< guessed tokens that proved an address
  uint64_t strayAccepted = 0;      ///< answers from elsewhere that did
  uint64_t bytesBeyond = 0;        ///< bytes to unproven addresses beyond three times what came from there
  std::string broken;  ///< not empty: what an honest peer was refused, so that the run proves nothing
  // what was tried
  uint64_t tokensSeen = 0;
  uint64_t predictions = 0;
  uint64_t strayAnswers = 0;
  uint64_t honestMoves = 0;     ///< right answers from the right place, all accepted
  uint64_t unprovenRoutes = 0;  ///< addresses that never answered
  uint64_t bytesFromThere = 0;  ///< to the gateway
  uint64_t bytesToThere = 0;    ///< from the gateway

  /// Keeps the first reason why the run proves nothing; an empty one is none.
  void note(const std::string& why) {
    if (broken.empty()) broken = why;
  }
};

/// Three attackers, one after the other, each against a gateway of its own. All of it follows from the seed.
TokensResult tokensRun(uint64_t seed);

/// Of `count` numbers of base/random.h, how many are foreseen from the one before: all, or the first attacker
/// could not have predicted anything anyway.
uint64_t foreseenOfRandom(uint64_t count);

}  // namespace braid::sim
