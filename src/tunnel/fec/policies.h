#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/recovery/recovery.h"
#include "tunnel/queue/flow_kind.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// A class of inner flows with a recovery policy or a delivery mode of its own. Unset fields match
/// every flow.
struct RecoveryClass {
  std::optional<uint8_t> protocol;  ///< IP protocol number
  std::optional<uint8_t> dscp;      ///< of the flow's first packet, 0..63
  uint16_t firstPort = 0;           ///< source or destination port from here on
  uint16_t lastPort = 65535;        ///< up to here
  std::string policy;               ///< name, see makeRecoveryPolicy()
  /// For datagrams: kOrdered or kTimely; unset: as the flow itself shows.
  std::optional<Delivery> delivery{};
};
/// Settings of proactive recovery. The configuration reader checks the ranges.
struct ProtectOptions {
  std::string recovery = "adaptive";  ///< policy of flows that match no class
  /// A flow belongs to the first class that matches it. At most kMaxRecoveryClasses.
  std::vector<RecoveryClass> recoveryClasses;
  /// Packets of a subflow that the receiver keeps for decoding; 0: it does not decode.
  size_t decodeBuffer = 1024;
};

/// The recovery policies of one session: that of flows in no class (0), then one for each class.
class RecoveryPolicies {
 public:
  /// Makes the policies that the options name. They replace the previous ones.
  void set(const ProtectOptions& options, const RecoveryOptions& recovery, SecretRandom& random) {
    policies_.clear();
    policies_.push_back(makeRecoveryPolicy(options.recovery, recovery, random.next()));
    for (const RecoveryClass& c : options.recoveryClasses) {
      if (policies_.size() <= kMaxRecoveryClasses)
        policies_.push_back(makeRecoveryPolicy(c.policy, recovery, random.next()));
    }
  }
  /// Number of policies, that of class 0 included; 0 before set().
  size_t size() const { return policies_.size(); }
  /// After a reload a flow may be in a class that no longer exists: it counts as class 0.
  RecoveryPolicy& of(uint8_t recoveryClass) const {
    return *policies_[recoveryClass < policies_.size() ? recoveryClass : 0];
  }

 private:
  std::vector<std::unique_ptr<RecoveryPolicy>> policies_;
};

}  // namespace braid
