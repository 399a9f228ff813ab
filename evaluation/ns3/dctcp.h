#pragma once

#include <ns3/tcp-dctcp.h>
#include <algorithm>
#include <string>

namespace braid::crosscheck {

/// ns-3's DCTCP with a minimum window of two segments after a mark or a loss, as in Linux (and
/// ssthresh after a loss by RFC 5681 equation 4). The window of unmodified ns-3 falls below one
/// segment, and then nothing is sent until the retransmission timer fires.
class Dctcp final : public ns3::TcpDctcp {
 public:
  static ns3::TypeId GetTypeId();  // NOLINT(readability-identifier-naming): ns-3's
  std::string GetName() const override { return "BraidDctcp"; }
  ns3::Ptr<ns3::TcpCongestionOps> Fork() override { return ns3::CopyObject<Dctcp>(this); }
  uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> state, uint32_t inFlight) override {
    return std::max(2 * state->m_segmentSize, ns3::TcpDctcp::GetSsThresh(state, inFlight));
  }
};

}  // namespace braid::crosscheck
