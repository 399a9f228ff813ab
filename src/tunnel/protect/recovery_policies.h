#pragma once

#include <memory>
#include <vector>

#include "scheduler/recovery/recovery.h"
#include "tunnel/protect/protect_options.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// The recovery policies of one session: the one of flows in no class (0), then one for each class.
class RecoveryPolicies {
 public:
  /// Makes them as the options say, in place of those there were.
  void set(const ProtectOptions& options, const RecoveryOptions& recovery, SecretRandom& random) {
    policies_.clear();
    policies_.push_back(makeRecoveryPolicy(options.recovery, recovery, random.next()));
    for (const RecoveryClass& c : options.recoveryClasses) {
      if (policies_.size() <= kMaxRecoveryClasses)
        policies_.push_back(makeRecoveryPolicy(c.policy, recovery, random.next()));
    }
  }
  /// Number of classes, the one of no class included; 0 before set().
  size_t size() const { return policies_.size(); }
  /// After a reload a flow may be of a class that is no more: it counts as of none.
  RecoveryPolicy& of(uint8_t recoveryClass) const {
    return *policies_[recoveryClass < policies_.size() ? recoveryClass : 0];
  }

 private:
  std::vector<std::unique_ptr<RecoveryPolicy>> policies_;
};

}  // namespace braid
