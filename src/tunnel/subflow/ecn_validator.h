#pragma once

#include <cstdint>

#include "base/time.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// Finds out whether a subflow's path carries ECN, and keeps the marks of a faulty path from the rate control
/// (RFC 9000 section 13.4.2 and appendix A.4). Packet numbers are the subflow's. One packet may be told lost
/// and acknowledged afterwards.
///
/// Testing -> Unknown -> Capable or Failed; Failed -> Testing after a pause; Capable -> Testing when the path
/// falls silent. A new path is tested whatever the state.
class EcnValidator {
 public:
  enum class State : uint8_t {
    kTesting,  ///< the first packets leave as ECT(0)
    kUnknown,  ///< enough have left; what became of them is not known yet
    kCapable,
    kFailed,  ///< the path clears, forges or drops; it is tested again now and then
  };
  /// A test is over after so many packets, or so many PTOs after its first (RFC 9000 section 13.4.2).
  static constexpr uint64_t kTestPackets = 10;
  static constexpr int kTestPtos = 3;
  /// A test that ended by time with fewer lost, and none acknowledged, goes on: that may be chance. Ours.
  static constexpr uint64_t kLeastLost = 3;
  /// A path that failed is tested again after this; when nothing of the test arrived, after twice as long
  /// each time. Ours; RFC 9000 section 13.4.2.2 allows it at any time.
  static constexpr Duration kFirstPause = 1s;
  static constexpr Duration kLongestPause = 300s;

  /// The next datagram that asks for an ACK leaves as `pn`. True: as ECT(0).
  bool onSent(PacketNumber pn, Duration pto, Time now);
  /// A datagram that nobody acknowledges leaves as ECT(0). When it arrives so before there is any traffic,
  /// the peer's count of it shows that marks which come later are no forgery.
  void onProbeSent() { ++unclaimed_; }
  /// Packet `pn`, sent as ECT(0), is newly acknowledged, by the ACK that onAck() tells of afterwards.
  void onAcked(PacketNumber pn);
  /// Packet `pn`, sent as ECT(0), is declared lost. True: nothing of its test has arrived, so that the loss
  /// need not be congestion.
  bool onLost(PacketNumber pn, Time now);
  /// An ACK came, with its largest number and the peer's counts. Gives how many more datagrams the counts
  /// prove to be marked CE, for the rate control: always 0 while the path is not known to be capable.
  uint64_t onAck(PacketNumber largest, const EcnCounts& counts, Time now);
  /// Packets from `next` on take a new route.
  void onNewPath(PacketNumber next);
  /// A PTO: the path may have begun to drop what is marked. `next`: the first packet not sent yet.
  void onSilence(PacketNumber next);

  State state() const { return state_; }
  /// "testing", "unknown", "capable", "failed".
  const char* name() const;
  /// Datagrams marked CE, as the peer counts them; forged ones too.
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
  EcnCounts counts_;         ///< of the last ACK that raised the largest number
  PacketNumber above_{};     ///< one more than that number
  uint64_t fresh_ = 0;       ///< ECT(0) packets newly acknowledged from there on
  uint64_t unclaimed_ = 0;   ///< sent as ECT(0) and in no count so far
  uint64_t givenMarks_ = 0;  ///< counts_.ce up to which the rate control knows
};

}  // namespace braid
