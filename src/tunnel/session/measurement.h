#pragma once

// A load test of a session's paths, which the operator asks for: datagrams that hold nothing, as many as the rate control
// lets through. They are packets of their subflow like any other, acknowledged, lost and paced; whatever else waits goes
// first. What the paths did meanwhile, the figures of the subflows tell (sent, delivered, lost, RTT).

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "tunnel/session/measure_request.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

class Measurement {
 public:
  /// `subflows`: the session's; they must outlive it.
  explicit Measurement(const SubflowSet& subflows) : subflows_(subflows) {}

  /// False, and nothing begins, when no usable subflow is what the request is about.
  bool begin(const MeasureRequest& request, Time now) {
    bool any = std::any_of(subflows_.begin(), subflows_.end(),
                           [&](const Subflow* s) { return s->usable() && isMeant(request, *s); });
    if (!any) return false;
    request_ = request;
    endsAt_ = now + std::min(request.time, MeasureRequest::kLongest);
    left_ = std::min(request.bytes, MeasureRequest::kMostBytes);
    sent_ = 0;
    running_ = true;
    return true;
  }
  void end() { running_ = false; }
  bool isRunning() const { return running_; }
  /// Ends it when its time or its bytes are over.
  void update(Time now) { running_ = running_ && now < endsAt_ && left_ > 0; }
  /// Whether the subflow is among those that are measured.
  bool means(const Subflow& s) const { return running_ && isMeant(request_, s); }
  void onSent(size_t bytes) {
    left_ -= std::min<uint64_t>(left_, bytes);
    sent_ += bytes;
  }
  Time endsAt() const { return endsAt_; }
  /// Bytes of UDP payload that it has sent.
  uint64_t sent() const { return sent_; }

 private:
  static bool isMeant(const MeasureRequest& request, const Subflow& s) {
    if (request.path.empty()) return request.metered || s.preference().use != PathUse::kMetered;
    return request.path == (s.uplink().empty() ? s.route().remote.toString() : s.uplink());
  }

  const SubflowSet& subflows_;
  MeasureRequest request_;
  Time endsAt_{};
  uint64_t left_ = 0, sent_ = 0;
  bool running_ = false;
};

}  // namespace braid
