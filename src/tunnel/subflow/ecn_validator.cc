#include "tunnel/subflow/ecn_validator.h"

#include <algorithm>
#include <utility>

namespace braid {

bool EcnValidator::onSent(PacketNumber pn, Duration pto, Time now) {
  if (state_ == State::kFailed && now >= retryAt_) begin(pn);
  if (state_ == State::kTesting && now >= testEnd_) state_ = State::kUnknown;
  if (state_ == State::kUnknown || state_ == State::kFailed) return false;
  ++unclaimed_;
  if (state_ == State::kCapable) return true;
  if (testEnd_ == kNever) testEnd_ = now + kTestPtos * pto;
  if (++testSent_ == kTestPackets) state_ = State::kUnknown;
  return true;
}

// A packet at or below the largest number of an earlier ACK may be in that ACK's counts already: an
// ACK holds only the newest ranges, and an older range can come back into the list.
void EcnValidator::onAcked(PacketNumber pn) {
  if (pn >= above_) ++fresh_;
  if (pn >= testFirst_) ++testAcked_;
}

bool EcnValidator::onLost(PacketNumber pn, Time now) {
  if (pn < testFirst_) return false;
  ++testLost_;
  if (testAcked_ > 0) return false;  // onAck() decides by the counts
  judge(now);
  return true;
}

uint64_t EcnValidator::onAck(PacketNumber largest, const EcnCounts& counts, Time now) {
  // RFC 9000 section 13.4.2.1: an ACK that was overtaken by a later one proves nothing.
  if (largest < above_) return 0;
  above_ = largest + 1;
  uint64_t fresh = std::exchange(fresh_, 0);
  uint64_t ect0 = counts.ect0 - std::min(counts.ect0, counts_.ect0);
  uint64_t ce = counts.ce - std::min(counts.ce, counts_.ce);
  bool valid = isValid(counts, ect0 + ce, fresh);
  unclaimed_ -= std::min(unclaimed_, ect0 + ce);
  counts_ = counts;
  bool deciding = state_ == State::kTesting || state_ == State::kUnknown;
  proven_ |= deciding && ect0 > 0;
  if (!valid && state_ != State::kFailed) {
    fail(now);
  } else if (deciding && testAcked_ > 0 && proven_) {
    state_ = State::kCapable;
    pause_ = kFirstPause;
  }
  judge(now);
  if (state_ == State::kFailed) givenMarks_ = counts.ce;
  if (state_ != State::kCapable) return 0;
  return counts.ce - std::exchange(givenMarks_, counts.ce);
}

// RFC 9000 section 13.4.2.1. We never send ECT(1).
bool EcnValidator::isValid(const EcnCounts& counts, uint64_t increase, uint64_t fresh) const {
  if (counts.ect0 < counts_.ect0 || counts.ce < counts_.ce) return false;
  return counts.ect1 == counts_.ect1 && increase >= fresh && increase <= unclaimed_;
}

// RFC 9000 appendix A.4: the test fails when all its packets are lost or arrived as CE.
void EcnValidator::judge(Time now) {
  if (state_ == State::kTesting && now >= testEnd_) state_ = State::kUnknown;
  if (state_ != State::kUnknown || testAcked_ + testLost_ < testSent_) return;
  if (testSent_ >= (testAcked_ > 0 ? kTestPackets : kLeastLost)) return fail(now);
  state_ = State::kTesting;
  testEnd_ = kNever;
}

void EcnValidator::fail(Time now) {
  state_ = State::kFailed;
  proven_ = false;
  retryAt_ = now + kFirstPause;
  if (testSent_ == 0 || testLost_ < testSent_) return;
  retryAt_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void EcnValidator::begin(PacketNumber next) {
  state_ = State::kTesting;
  testFirst_ = next;
  testSent_ = testAcked_ = testLost_ = 0;
  testEnd_ = kNever;
}

void EcnValidator::onNewPath(PacketNumber next) {
  begin(next);
  proven_ = false;
  pause_ = kFirstPause;
  givenMarks_ = counts_.ce;
}

void EcnValidator::onSilence(PacketNumber next) {
  if (state_ == State::kCapable) begin(next);
}

const char* EcnValidator::name() const {
  switch (state_) {
    case State::kTesting:
      return "testing";
    case State::kUnknown:
      return "unknown";
    case State::kCapable:
      return "capable";
    case State::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace braid
