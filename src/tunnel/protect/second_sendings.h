#pragma once

#include <cstddef>

#include "base/ring.h"
#include "tunnel/protect/protection_context.h"
#include "tunnel/protect/recovery_policies.h"

namespace braid {

/// Inner packets that are to be sent a second time whatever becomes of the first sending: those of a
/// duplicating policy, and the one that holds a full receive window back. A second sending waits for its path
/// as the first one did, but holds nothing else up. What is delivered, lost or copied meanwhile is left out.
class SecondSendings {
 public:
  /// Waiting at most: beyond it the oldest is dropped. Ours.
  static constexpr size_t kMost = 1024;

  /// Both must outlive it.
  SecondSendings(const ProtectionContext& context, const RecoveryPolicies& policies)
      : context_(context), policies_(policies) {}
  ~SecondSendings() { clear(); }
  SecondSendings(const SecondSendings&) = delete;
  SecondSendings& operator=(const SecondSendings&) = delete;

  /// Remembers the datum, which has been sent once.
  void add(const Datum* datum);
  bool empty() const { return waiting_.empty(); }
  /// The next one that is still wanted; false when there is none, or its path is not open.
  bool poll(Datagram& out, Time now);
  /// Drops all.
  void clear();

 private:
  bool isWanted(const Datum& datum, Time now) const;
  void dropFirst();
  /// Whether there is a path for the datum's second sending; `open`: the fastest one that is open now.
  bool findPath(const Datum& datum, Subflow*& open, Time now) const;

  const ProtectionContext& context_;
  const RecoveryPolicies& policies_;
  Ring<const Datum*> waiting_;
};

}  // namespace braid
