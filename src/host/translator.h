#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inet/endpoint.h"
#include "inet/prefix.h"

namespace braid {

/// Addresses from the first to the last one, of one family.
struct AddressRange {
  Address first, last;
  bool operator==(const AddressRange&) const = default;
};

/// Ports of this host that lead to another one.
struct PortForward {
  uint8_t protocol = 0;  ///< ip::kTcp or ip::kUdp
  uint16_t firstPort = 0, lastPort = 0;
  Address to;
  uint16_t toPort = 0;       ///< 0: the port that was asked for
  std::vector<Prefix> from;  ///< sources that may use it, of the family of `to`; empty: all
  bool ownSource = false;    ///< the other host sees this one, and not the source
  bool operator==(const PortForward&) const = default;
};

/// How the kernel is to translate addresses of packets that pass this host.
struct Translation {
  std::string device;  ///< the tunnel's interface
  bool masqueradeV4 =
      false;  ///< what comes from the tunnel and leaves by another interface gets that one's address
  bool masqueradeV6 = false;
  std::vector<AddressRange> sources;  ///< of which sources; ordered, apart from each other
  std::vector<PortForward> forwards;  ///< the first that fits counts
  bool isEmpty() const { return !masqueradeV4 && !masqueradeV6 && forwards.empty(); }
  bool operator==(const Translation&) const = default;
};

/// Translates addresses of packets, by rules that end with this object and with the process, however that ends.
class Translator {
 public:
  virtual ~Translator() = default;
  /// All at once in place of what was set before. Throws SystemError: then all is as it was.
  virtual void set(const Translation& what) = 0;
};

}  // namespace braid
