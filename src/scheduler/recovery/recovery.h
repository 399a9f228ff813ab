#pragma once

// Proactive recovery: what to send to protect packets that are not known to be lost, and on which
// path. A policy decides. ProactiveRecovery (tunnel/fec/recovery_driver.h) finds the packets,
// builds copies and parities, and keeps two promises for every policy: protection is never sent
// ahead of new data, and never beyond the congestion window.
//
// The end of this file holds what FUSO and the policies derived from it share: when there is room
// for protection, and how to find the worst and the best path (paper FUSO, Algorithm 1 and section
// III-B.1).

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/random.h"
#include "base/time.h"

namespace braid {

/// Largest number of flow classes with a policy of their own, besides class 0: the flows that no
/// class matches.
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
  /// CoFUSO: a fixed M / K, (0, 1], instead of the loss rate L; 0: L is used. The dynamic rate is
  /// compared with it (section 6.2.4); no configuration sets it.
  double codingRate = 0;
  /// decodeTime[i]: measured time to restore i+1 symbols of a block of kMax; 0: not measured. M_max
  /// keeps it below RTT/4 (CoFUSO section 4.2.1).
  std::array<Duration, 16> decodeTime{};
};

/// What a policy may know about a subflow.
struct RecoveryPath {
  bool usable = false;  ///< validated and not suspect
  bool open = false;    ///< usable, and its window has room for one more datagram now
  Duration srtt{};
  uint64_t window = 0;    ///< bytes
  uint64_t inFlight = 0;  ///< bytes
  uint64_t sent = 0;      ///< packets ever sent that count for loss, LossEstimate::onSent()
  uint64_t lost = 0;      ///< of those: declared lost and not proved spurious
  /// Packets sent since the last loss was noticed, at least 1; 0: none was ever lost.
  uint64_t sinceLoss = 0;
  double recentRate = 0;     ///< share lost among the latest packets (loss_estimate.h)
  double recentPackets = 0;  ///< how many packets recentRate rests on
  double burst = 1;          ///< mean length of its runs of losses, packets; at least 1
  bool congested = false;    ///< its losses come from congestion (congestion_signs.h)
  Time opensAt = kNever;     ///< when it opens; kNever: not before the next ACK
  Time lastAcked{};          ///< when an ACK last acknowledged something new on this subflow
  /// When data of any flow of the class was last sent; protection does not count.
  Time lastSent = Time::min();
  uint16_t uplink = 0;  ///< paths with the same number share an uplink

  // The fields below are filled in for choose() only.
  /// Un-ACKed data packets that were never sent as a copy. It may be 1 for any number above 0.
  size_t uncopied = 0;
  size_t uncoded = 0;  ///< of those: packets that are in no block either, counted up to kMax
  size_t unacked = 0;  ///< un-ACKed data packets, protected or not; may be 1 for any number above 0
  Time newestSent{};   ///< when the newest of `unacked` was sent (protection does not count)
  Time oldestUncoded{};  ///< when the oldest of `uncoded` was sent
};

/// Why the policy is asked.
enum class RecoveryChance : uint8_t {
  kIdle,  ///< nothing new to send (FUSO Algorithm 1); paths count the data of all flows of the
          ///< class
  kTurn,  ///< the DRR turn of a short flow; paths count the data of that flow only
};

/// What a policy is asked about.
struct RecoveryView {
  RecoveryChance chance = RecoveryChance::kIdle;
  std::span<const RecoveryPath> paths;
  Time now;
  /// The flow or flows asked about have signalled an end: FIN, or PSH with nothing queued behind
  /// it.
  bool ended = false;
  /// Parities of the current block that are still to be sent; 0: no block is begun.
  size_t paritiesLeft = 0;
  size_t blockOf = 0;  ///< if so: the path that sent most packets of the block
};

/// One packet of protection.
struct Protection {
  enum class Kind : uint8_t {
    kCopy,       ///< a copy of the oldest un-ACKed, uncopied packet of path `of`
    kNewest,     ///< a probe: a copy of the newest un-ACKed packet of path `of`, copied or not
    kNewBlock,   ///< the first parity of a new block
    kNextParity  ///< the next parity of the current block
  };
  /// The block is over the packets of all paths.
  static constexpr size_t kAllPaths = SIZE_MAX;

  Kind kind = Kind::kCopy;
  size_t of = 0;  ///< index of the path that sent the packets, or kAllPaths; kNextParity: unused
  size_t on = 0;  ///< index of the path to send the protection on; it is open
  size_t symbols = 0;    ///< kNewBlock: K; the block is over the K oldest uncoded packets
  size_t parities = 0;   ///< kNewBlock: M
  bool uncoded = false;  ///< kCopy: copy the oldest packet that is in no block either
  /// kNewBlock: packets sent later are left out; K is the number that remains.
  Time sentUntil = kNever;
};

/// Copies that are sent along with new data, even while other data waits.
enum class Duplication : uint8_t {
  kNone,
  kSamePath,   ///< each packet twice on its path (Proactive)
  kOtherPath,  ///< each packet on the two best paths, of two uplinks if there are several
               ///< (RepFlow, the "redundant mode" of bonding boxes)
};

/// Where data that is known to be lost is resent.
enum class RepairPlace : uint8_t {
  kBestPath,  ///< the fastest path that takes it
  kOwnPath,   ///< the path that lost it, as long as it is usable (MPTCP)
};

/// A recovery policy: decides which packets are protected, how, and on which path.
class RecoveryPolicy {
 public:
  virtual ~RecoveryPolicy() = default;
  /// choose() is not called before this time. It is asked for first, before the packets of the
  /// paths are counted. kNever: the policy does not use choose(). For RecoveryChance::kIdle, the
  /// caller asks again at that time.
  virtual Time notBefore(const RecoveryView& view) const { return view.now; }
  /// The next packet of protection, or nullopt for none now. Called again after each packet, until
  /// it returns nullopt.
  virtual std::optional<Protection> choose(const RecoveryView& view) = 0;
  /// After choose() returned nullopt: when to ask again although nothing was sent or acknowledged;
  /// kNever: only after the next send or ACK.
  virtual Time nextDeadline() const { return kNever; }
  virtual Duplication duplication() const { return Duplication::kNone; }
  virtual RepairPlace repairPlace() const { return RepairPlace::kOwnPath; }
  /// Whether protection may use the DRR turn of a short flow that has sent its last packet.
  virtual bool takesTurns() const { return false; }
};

/// L or C_l of a path (FUSO section III-B.1, CoFUSO section 4.2.4): the weighted sum of the overall
/// loss rate and the most recent one, which is 1 / sinceLoss. 0 when nothing was ever lost.
double lossMetric(const RecoveryPath& path, double overallWeight, double lastWeight);

/// M_max for this RTT: the largest number of parities, from 1 to options.mMax, whose decoding takes
/// less than RTT/4.
size_t maxParities(const RecoveryOptions& options, Duration rtt);

/// Makes a policy by its configuration name ("none", "fuso", "cofuso", "redundant", "proactive",
/// "reactive", "corrective", "adaptive"); nullptr for an unknown name. `seed`: for ties that a
/// policy breaks at random.
std::unique_ptr<RecoveryPolicy> makeRecoveryPolicy(std::string_view name,
                                                   const RecoveryOptions& options, uint64_t seed);

/// The rank of a path: a metric, and an RTT that decides between equal metrics. Smaller is better.
struct PathRank {
  double metric = 0;
  Duration rtt{};
  auto operator<=>(const PathRank&) const = default;
};

/// FUSO Algorithm 1: BytesInFlight_Total < CWND_Total, over the usable paths.
inline bool hasSpareWindow(std::span<const RecoveryPath> paths) {
  uint64_t inFlight = 0;
  uint64_t window = 0;
  for (const RecoveryPath& path : paths) {
    if (!path.usable) continue;
    inFlight += path.inFlight;
    window += path.window;
  }
  return inFlight < window;
}

/// FIND_WORST_SUB-FLOW: the path with the largest `rank(path)` among those for which
/// `eligible(path)` is true; the first of equals. A path that is not usable can be the worst.
template <typename Eligible, typename Rank>
std::optional<size_t> findWorst(std::span<const RecoveryPath> paths, Eligible eligible, Rank rank) {
  std::optional<size_t> worst;
  PathRank worstRank;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!eligible(paths[i])) continue;
    const PathRank candidate = rank(paths[i]);
    if (worst && !(candidate > worstRank)) continue;
    worst = i;
    worstRank = candidate;
  }
  return worst;
}

/// The open paths on which packets that path `of` sent may be protected. Paths that share an uplink
/// are likely to fail together. So the other paths of its uplink are left out as long as a path of
/// another uplink is usable. Whether the path itself is a good choice is left to the policy.
class ProtectingPaths {
 public:
  ProtectingPaths(std::span<const RecoveryPath> paths, size_t of) : paths_(paths), of_(of) {
    auto isElsewhere = [&](const RecoveryPath& path) {
      return path.usable && path.uplink != paths[of].uplink;
    };
    elsewhere_ = std::any_of(paths.begin(), paths.end(), isElsewhere);
  }
  bool has(size_t on) const {
    return paths_[on].open && (on == of_ || !elsewhere_ || paths_[on].uplink != paths_[of_].uplink);
  }

 private:
  std::span<const RecoveryPath> paths_;
  size_t of_;
  bool elsewhere_;
};

/// FIND_BEST_SUB-FLOW: of the open paths that may protect the packets of path `of`, the one with
/// the smallest `rank(path)`; the first of equals. Paths that never sent anything count as
/// infinitely bad. When none of these paths ever sent anything, one is chosen at random.
template <typename Rank>
std::optional<size_t> findBest(std::span<const RecoveryPath> paths, size_t of, Rank rank,
                               Random& random) {
  const ProtectingPaths allowed(paths, of);
  std::optional<size_t> best;
  PathRank bestRank;
  std::optional<size_t> unused;
  uint64_t unusedCount = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!allowed.has(i)) continue;
    if (paths[i].sent == 0) {
      ++unusedCount;
      if (!best && random.below(unusedCount) == 0) unused = i;  // each with the same chance
      continue;
    }
    const PathRank candidate = rank(paths[i]);
    if (best && !(candidate < bestRank)) continue;
    best = i;
    bestRank = candidate;
  }
  return best ? best : unused;
}

/// "none": plain MPTCP, with which the papers compare (FUSO section VI-A). Nothing is protected;
/// each subflow repairs its own losses. MPTCP's reinjections on another subflow (opportunistic
/// retransmission when the window is full, and the data of a dead subflow) are done by the session
/// under every policy.
class NoRecovery : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
};

/// "redundant": sends every packet on two paths at once. RepFlow (CoFUSO section 6.2.1, FUSO
/// section VI-A) sends a short flow twice over two connections; bonding boxes call this redundant
/// mode. Difference: RepFlow leaves the choice of the two paths to chance (ECMP); here they are the
/// two best paths, of two uplinks if there are several. Nothing else is protected.
class Redundant final : public NoRecovery {
 public:
  Duplication duplication() const override { return Duplication::kOtherPath; }
};

}  // namespace braid
