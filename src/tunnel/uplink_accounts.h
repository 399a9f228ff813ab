#pragma once

// What all subflows of an uplink share, whatever their peers: the ceiling of what they send, and the meter of
// what they carry.

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/rate/pacer.h"
#include "tunnel/io.h"
#include "tunnel/uplink_meter.h"

namespace braid {

struct UplinkAccount {
  UplinkSpec spec;
  std::shared_ptr<Pacer> ceiling;    ///< null: none
  std::optional<UplinkMeter> meter;  ///< none: not metered
  bool isUsable() const { return spec.up && !(meter && meter->closed()); }
};

class UplinkAccounts {
 public:
  /// `datagram`: bytes of a datagram of full size.
  explicit UplinkAccounts(uint64_t datagram) : datagram_(datagram) {}

  /// Replaces the uplinks; of those whose names stay, meters go on.
  void set(std::vector<UplinkSpec> specs);
  const std::vector<UplinkAccount>& all() const { return accounts_; }
  /// The uplink of that name; nullptr when there is none.
  UplinkAccount* find(std::string_view name);
  /// A datagram of `bytes` came or went on that route. Gives the uplink whose meter is full with it, nearly always
  /// nullptr.
  const UplinkAccount* count(const Route& route, size_t bytes, Time now);

 private:
  uint64_t datagram_;
  std::vector<UplinkAccount> accounts_;
  std::unordered_map<SocketId, size_t> metered_;  // index in accounts_ by socket
};

}  // namespace braid
