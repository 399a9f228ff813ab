#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "tunnel/session/session_options.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// A load test of a session's paths, which the operator requests (PeerLoadTest). While it runs,
/// Outbound fills the included subflows with full-size datagrams without content, as many as
/// congestion control permits, whenever nothing else is to be sent. They are packets of their
/// subflow like all others: acknowledged, lost and paced. The result is in the statistics of the
/// subflows (sent, delivered, lost, RTT).
///
/// A test begins with begin() and runs until end(), or until its time or its bytes are used up.
class LoadTest {
 public:
  /// `subflows`: those of the session; they must outlive this object.
  explicit LoadTest(const SubflowSet& subflows) : subflows_(subflows) {}

  /// Begins a test, instead of one that runs. Time and bytes beyond the bounds of MeasureRequest
  /// are cut to them. False, and nothing changes, when the request includes no usable subflow.
  bool begin(const MeasureRequest& request, Time now) {
    bool any = std::any_of(subflows_.begin(), subflows_.end(), [&](const Subflow* s) {
      return s->usable() && isIncluded(request, *s);
    });
    if (!any) return false;
    request_ = request;
    endsAt_ = now + std::min(request.time, MeasureRequest::kLongest);
    left_ = std::min(request.bytes, MeasureRequest::kMostBytes);
    sent_ = 0;
    running_ = true;
    return true;
  }
  /// Ends the test, if one runs.
  void end() { running_ = false; }
  bool isRunning() const { return running_; }
  /// Ends the test if its time or its bytes are used up. Outbound calls it before each datagram.
  void endIfDone(Time now) { running_ = running_ && now < endsAt_ && left_ > 0; }
  /// Whether a test runs that includes the subflow.
  bool includes(const Subflow& s) const { return running_ && isIncluded(request_, s); }
  /// A datagram of the test was sent, of `bytes` bytes of UDP payload.
  void onSent(uint64_t bytes) {
    left_ -= std::min<uint64_t>(left_, bytes);
    sent_ += bytes;
  }
  /// When the test ends at the latest; of the last one when none runs.
  Time endsAt() const { return endsAt_; }
  /// Bytes of UDP payload sent by the last test.
  uint64_t sent() const { return sent_; }

 private:
  static bool isIncluded(const MeasureRequest& request, const Subflow& s) {
    if (request.path.empty()) return request.metered || s.preference().use != PathUse::kMetered;
    return request.path == s.pathName();
  }

  const SubflowSet& subflows_;
  MeasureRequest request_;
  Time endsAt_{};
  uint64_t left_ = 0, sent_ = 0;  ///< bytes
  bool running_ = false;
};

}  // namespace braid
