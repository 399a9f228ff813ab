#pragma once

#include <cstdint>

#include "base/time.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// Finds out whether a subflow's path carries ECN, and keeps the marks of a faulty path from rate
/// control (RFC 9000 section 13.4.2 and appendix A.4). Packet numbers are those of the subflow. A
/// packet may be reported lost and acknowledged afterwards.
///
/// States: Testing -> Unknown -> Capable or Failed; Failed -> Testing after a pause; Capable ->
/// Testing when the path falls silent. A new path is tested whatever the state.
class EcnValidator {
 public:
  enum class State : uint8_t {
    kTesting,  ///< the first packets leave as ECT(0)
    kUnknown,  ///< the test packets have left; what became of them is not known yet
    kCapable,
    kFailed,  ///< the path clears or forges marks, or drops marked packets; tested again later
  };
  /// A test is over after kTestPackets packets, or kTestPtos PTOs after its first packet (RFC 9000
  /// section 13.4.2).
  static constexpr uint64_t kTestPackets = 10;
  static constexpr int kTestPtos = 3;
  /// A test that ended by time continues when no packet was acknowledged and fewer than this many
  /// were lost: those losses may be chance.
  static constexpr uint64_t kLeastLost = 3;
  /// A failed path is tested again after kFirstPause. When nothing of the test arrived, the pause
  /// doubles each time, up to kLongestPause. RFC 9000 section 13.4.2.2 allows a new test at any
  /// time.
  static constexpr Duration kFirstPause = 1s;
  static constexpr Duration kLongestPause = 300s;

  /// The next ack-eliciting datagram is sent as packet `pn`. Returns whether to send it as ECT(0).
  bool onSent(PacketNumber pn, Duration pto, Time now);
  /// A datagram that is not ack-eliciting was sent as ECT(0). When it arrives as ECT(0) before
  /// there is any traffic, the peer's count of it shows that marks which come later are not forged.
  void onProbeSent() { ++unclaimed_; }
  /// Packet `pn`, sent as ECT(0), is newly acknowledged. The caller then calls onAck() for the same
  /// ACK.
  void onAcked(PacketNumber pn);
  /// Packet `pn`, sent as ECT(0), is declared lost. Returns true when no packet of its test has
  /// arrived: then the loss need not be congestion.
  bool onLost(PacketNumber pn, Time now);
  /// An ACK came, with `largest` as its largest packet number and `counts` as the peer's ECN
  /// counts. Returns how many more datagrams the counts prove to be marked CE, for rate control;
  /// always 0 while the path is not known to be capable.
  uint64_t onAck(PacketNumber largest, const EcnCounts& counts, Time now);
  /// Packets with number `next` and above take a new route.
  void onNewPath(PacketNumber next);
  /// A PTO has passed: the path may have begun to drop marked packets. `next`: the number of the
  /// next packet to be sent.
  void onSilence(PacketNumber next);

  State state() const { return state_; }
  /// "testing", "unknown", "capable", "failed".
  const char* name() const;
  /// Datagrams marked CE, as the peer counts them, forged marks included.
  uint64_t ceCount() const { return counts_.ce; }

 private:
  void begin(PacketNumber next);
  bool isValid(const EcnCounts& counts, uint64_t increase, uint64_t fresh) const;
  void judge(Time now);
  void fail(Time now);

  State state_ = State::kTesting;
  bool proven_ = false;  ///< the route has delivered ECT(0) unchanged
  // of the test
  PacketNumber testFirst_{};
  uint64_t testSent_ = 0, testAcked_ = 0, testLost_ = 0;
  Time testEnd_ = kNever;
  // of failure
  Duration pause_ = kFirstPause;
  Time retryAt_ = kNever;
  // of the counts
  EcnCounts counts_;         ///< of the last ACK that raised the largest acknowledged number
  PacketNumber above_{};     ///< one more than that number
  uint64_t fresh_ = 0;       ///< ECT(0) packets newly acknowledged at or above `above_`
  uint64_t unclaimed_ = 0;   ///< sent as ECT(0) and not in any of the peer's counts yet
  uint64_t givenMarks_ = 0;  ///< CE marks already reported to rate control
};

}  // namespace braid
