#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// The result of one run of attackers that have the keys of a session: their gains and their
/// attempts.
struct TokensResult {
  // offences
  uint64_t predictedAccepted = 0;  ///< guessed tokens that validated an address
  uint64_t strayAccepted = 0;      ///< answers from other addresses that validated one
  uint64_t bytesBeyond =
      0;  ///< bytes sent to unvalidated addresses beyond three times the bytes received from them
  /// Not empty: something that was refused to an honest peer, so that the run proves nothing
  std::string broken;
  // what was tried
  uint64_t tokensSeen = 0;
  uint64_t predictions = 0;
  uint64_t strayAnswers = 0;
  uint64_t honestMoves = 0;     ///< correct answers from the right address, all accepted
  uint64_t unprovenRoutes = 0;  ///< addresses that never answered
  uint64_t bytesFromThere = 0;  ///< to the gateway
  uint64_t bytesToThere = 0;    ///< from the gateway

  /// Keeps the first non-empty reason why the run proves nothing.
  void note(const std::string& why) {
    if (broken.empty()) broken = why;
  }
};

/// Runs three attackers, one after the other, each against its own gateway. The seed decides
/// everything.
TokensResult tokensRun(uint64_t seed);

/// How many of `count` numbers of base/random.h can be predicted from the previous one. It must be
/// all of them: otherwise the first attacker's method would not work even against that generator.
uint64_t foreseenOfRandom(uint64_t count);

}  // namespace braid::sim
