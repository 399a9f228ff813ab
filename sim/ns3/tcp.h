#pragma once

// ns-3's TCP, set up as Braid's own model is.

#include <cstdint>
#include <string>

namespace braid::crosscheck {

struct TcpSettings {
  std::string control = "newreno";  ///< newreno, cubic or dctcp
  std::string recovery = "prr";     ///< prr (RFC 6937) or classic (the window falls to ssthresh at once)
  double minRto = 200;              ///< ms
  uint32_t initialWindow = 10;      ///< segments
  uint32_t ackEvery = 2;            ///< segments of one ACK
  double ackDelay = 40;             ///< ms that an ACK waits at most
  uint32_t segment = 1448;          ///< bytes of payload
  uint32_t buffer = 4 << 20;        ///< bytes, of the sender and of the receiver's window
  bool sack = true;
  bool timestamps = true;
};

/// Makes all sockets that are opened from now on like this. Throws std::runtime_error when the control or the
/// recovery has no such name.
void setDefaults(const TcpSettings& settings);

}  // namespace braid::crosscheck
