#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// The queue discipline of a switch port: how it drops and marks packets.
enum class Discipline : uint8_t {
  kDropTail,
  kDropRand,  ///< a full queue drops a random packet, possibly the arriving one
  kRedEcn,    ///< RED (Floyd and Jacobson 1993, "gentle"): marks, or drops what is not ECN-capable
  kDctcp,     ///< marks when the queue exceeds K (RFC 8257 section 3.1), drops when full
};
/// The discipline by name: "droptail", "droprand", "red-ecn" or "dctcp". Throws std::runtime_error
/// for other names.
Discipline disciplineOf(const std::string& name);

}  // namespace braid::sim
