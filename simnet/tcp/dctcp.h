#pragma once

#include "scheduler/rate/dctcp.h"
#include "simnet/tcp/newreno.h"

namespace braid::sim::tcp {

/// DCTCP (RFC 8257): a mark reduces the window by the factor alpha / 2, where alpha is the average
/// share of marked bytes. A loss reduces it as in NewReno (section 3.5). Growth is NewReno's.
class DctcpWindow final : public NewReno {
 public:
  using NewReno::NewReno;

  void observe(const AckEvent& ack) override {
    AckSample sample;
    sample.now = ack.now;
    sample.bytes = ack.acked;
    sample.largestSentAt = ack.sentAt;
    sample.marks = ack.echo ? ack.acked : 0;
    marks_.onAck(sample, 1);  // the marks are counted in bytes
  }
  double afterMark(double window, Time) override { return window * (1 - alpha() / 2); }
  bool markSuffices() const override { return false; }

  /// DCTCP.Alpha, 0..1.
  double alpha() const { return marks_.value(); }

 private:
  MarkFraction marks_;
};

}  // namespace braid::sim::tcp
