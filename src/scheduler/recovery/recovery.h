#pragma once

// Proactive recovery: what to send in protection of packets that are not known to be lost, and where. A
// policy decides; the Protector (tunnel/protect/protector.h) finds the packets, builds copies and parities, and
// keeps the two promises for every policy alike: never ahead of new data, never beyond the congestion window.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/time.h"

namespace braid {

/// Most classes of flows with a policy of their own, beside class 0: flows that no class matches.
inline constexpr size_t kMaxRecoveryClasses = 7;

struct RecoveryOptions {
  /// FUSO section III-B.1 and VI-A: C_l = alpha * lossrate + beta * lossrate_last.
  double alpha = 0.5;
  double beta = 0.5;
  /// CoFUSO section 4.2.4 and 6.2: L = alpha1 * lossrate + beta1 * lossrate_last, and the metric
  /// alpha2 * normalised L + beta2 * normalised RTT.
  double alpha1 = 0.5;
  double beta1 = 0.5;
  double alpha2 = 0.5;
  double beta2 = 0.5;
  size_t kMax = 128;  ///< symbols of a block, 1..128
  size_t mMax = 3;    ///< parities of a block, 1..16 (CoFUSO section 6.2.4: 3 does best)
  /// CoFUSO: M / K in place of the loss rate L, (0, 1]; 0: L rules. What the dynamic rate is compared with (section
  /// 6.2.4); no configuration sets it.
  double codingRate = 0;
  /// Measured time to restore i+1 symbols of a block of kMax; 0: not measured. M_max keeps it below RTT/4
  /// (CoFUSO section 4.2.1).
  std::array<Duration, 16> decodeTime{};
};

/// What a policy may know of a subflow.
struct RecoveryPath {
  bool usable = false;  ///< validated and not suspect
  bool open = false;    ///< usable, and its window has room for one more datagram now
  Duration srtt{};
  uint64_t window = 0;       ///< bytes
  uint64_t inFlight = 0;     ///< bytes
  uint64_t sent = 0;         ///< packets that carried something to be acknowledged, ever
  uint64_t lost = 0;         ///< of those, declared lost and not proved spurious
  uint64_t sinceLoss = 0;    ///< packets sent from the last lost one on, it included; 0: none was ever lost
  double recentRate = 0;     ///< share lost among the latest packets (loss_estimate.h)
  double recentPackets = 0;  ///< how many packets recentRate rests on
  double burst = 1;          ///< mean length of its runs of losses, packets; at least 1
  Time opensAt = kNever;     ///< when it is open; kNever: not before an ACK has come
  Time lastAcked{};          ///< when an ACK last told something new of this subflow
  Time lastSent = Time::min();  ///< when data last left, of any flow of the class; protection does not count

  // Counted for choose() only.
  size_t uncopied = 0;   ///< un-ACKed data packets never sent as a copy: 0 or at least 1, counted up to kMax
  size_t uncoded = 0;    ///< of those, packets that are in no block either, counted up to kMax
  size_t unacked = 0;    ///< un-ACKed data packets, protected or not: 0 or at least 1
  Time newestSent{};     ///< when the newest of `unacked` left (protection does not count)
  Time oldestUncoded{};  ///< when the oldest of `uncoded` left
};

/// Why the policy is asked.
enum class RecoveryChance : uint8_t {
  kIdle,  ///< nothing new to send (FUSO Algorithm 1); paths count the data of all flows
  kTurn,  ///< the turn of a short flow among others; paths count the data of that flow only
};

struct RecoveryView {
  RecoveryChance chance = RecoveryChance::kIdle;
  std::span<const RecoveryPath> paths;
  Time now;
  /// The flow(s) asked about said that they end: FIN, or PSH with nothing queued behind.
  bool ended = false;
  /// Parities of the block under way that are still to be sent; 0: none is under way.
  size_t paritiesLeft = 0;
};

/// One packet of protection.
struct Protection {
  enum class Kind : uint8_t {
    kCopy,       ///< of the oldest un-ACKed, uncopied packet of path `of`
    kNewest,     ///< a copy of the newest un-ACKed packet of path `of`, copied before or not (a probe)
    kNewBlock,   ///< the first parity of a new block
    kNextParity  ///< the next parity of the block under way
  };
  /// Block over the packets of all paths.
  static constexpr size_t kAllPaths = SIZE_MAX;

  Kind kind = Kind::kCopy;
  size_t of = 0;            ///< path whose packets are protected, or kAllPaths; no meaning with kNextParity
  size_t on = 0;            ///< path to send it on: open
  size_t symbols = 0;       ///< kNewBlock: K, the oldest so many uncoded packets
  size_t parities = 0;      ///< kNewBlock: M
  bool uncoded = false;     ///< kCopy: the oldest that is in no block either
  Time sentUntil = kNever;  ///< kNewBlock: packets that left later are left out, K is what remains then
};

/// Copies that go with new data, whoever waits behind it.
enum class Duplication : uint8_t {
  kNone,
  kSamePath,   ///< each packet twice on its path (Proactive)
  kOtherPath,  ///< each packet on the two best paths (RepFlow, the "redundant mode" of bonding boxes)
};

/// What becomes of data that is known lost.
enum class RepairPlace : uint8_t {
  kBestPath,  ///< the fastest path that takes it
  kOwnPath,   ///< the path that lost it, as long as it is usable (MPTCP)
};

/// A recovery policy. One a file.
class RecoveryPolicy {
 public:
  virtual ~RecoveryPolicy() = default;
  /// Before this nothing is chosen: what a look at the paths says before their packets are counted. kNever:
  /// the policy protects nothing in this way. At kIdle somebody asks again when the time has come.
  virtual Time notBefore(const RecoveryView& view) const { return view.now; }
  /// The next packet of protection, or nullopt for none now. Called again after each, until nullopt.
  virtual std::optional<Protection> choose(const RecoveryView& view) = 0;
  /// After choose() gave nothing: when to ask again though nothing is sent or acknowledged; kNever: only
  /// then.
  virtual Time nextDeadline() const { return kNever; }
  virtual Duplication duplication() const { return Duplication::kNone; }
  virtual RepairPlace repairPlace() const { return RepairPlace::kOwnPath; }
  /// Protection may use the turn of a short flow that has sent its last packet.
  virtual bool takesTurns() const { return false; }
};

/// L or C_l of a path (FUSO section III-B.1, CoFUSO section 4.2.4): the weighted sum of the overall loss rate
/// and the most recent one, which is 1 / sinceLoss. 0 when nothing was ever lost.
double lossMetric(const RecoveryPath& path, double overallWeight, double lastWeight);

/// M_max for this RTT: the most parities, up to options.mMax and at least 1, whose decoding takes less than
/// RTT/4.
size_t maxParities(const RecoveryOptions& options, Duration rtt);

/// Makes a policy by its configuration name ("none", "fuso", "cofuso", "redundant", "proactive", "reactive",
/// "corrective", "adaptive"); nullptr for an unknown name. `seed` for the ties that a policy breaks at
/// random.
std::unique_ptr<RecoveryPolicy> makeRecoveryPolicy(std::string_view name, const RecoveryOptions& options,
                                                   uint64_t seed);

}  // namespace braid
