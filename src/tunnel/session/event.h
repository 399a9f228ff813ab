#pragma once

#include <cstdint>
#include <string>

namespace braid {

/// Something worth a log line.
struct Event {
  enum class Kind : uint8_t {
    kPeerUp,
    kPeerDown,
    kHandshakeFailed,
    kSubflowUp,
    kSubflowSuspect,
    kSubflowFailed,
    kSubflowDuty,
    kCapReached,
    kNewPeriod,
    kAddressChanged,
    kRekeyed,
    kInnerMtu
  };
  Kind kind;
  std::string peer;
  std::string text;  ///< one line in plain words
};

}  // namespace braid
