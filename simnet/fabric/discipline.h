#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// How the port of a switch drops and marks.
enum class Discipline : uint8_t {
  kDropTail,
  kDropRand,  ///< a full queue drops one at random, the arriving packet among them
  kRedEcn,    ///< RED (Floyd and Jacobson 1993, "gentle"): marks, or drops what is not ECN-capable
  kDctcp,     ///< marks above a queue of K (RFC 8257 section 3.1), drops when full
};
/// "droptail", "droprand", "red-ecn", "dctcp"; throws std::runtime_error for others.
Discipline disciplineOf(const std::string& name);

}  // namespace braid::sim
