#include "evaluation/ns3/tcp.h"

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/nstime.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-dctcp.h>
#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-prr-recovery.h>
#include <ns3/tcp-recovery-ops.h>
#include <ns3/type-id.h>
#include <ns3/uinteger.h>
#include <map>
#include <stdexcept>

#include "evaluation/ns3/dctcp.h"
#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

namespace {

constexpr uint32_t kInitialWindow = 10;       // segments (RFC 6928)
constexpr uint32_t kStamp = 12;               // bytes of a segment's timestamps (RFC 7323)
constexpr uint32_t kSegment = 1460 - kStamp;  // bytes: a packet is 1,500
constexpr uint32_t kBuffer = 4 << 20;  // bytes: the sender's buffer and the receiver's window

ns3::TypeId named(const std::map<std::string, ns3::TypeId>& types, const char* kind,
                  const std::string& name) {
  auto found = types.find(name);
  if (found == types.end()) throw std::runtime_error(std::string("no ") + kind + " " + name);
  return found->second;
}

}  // namespace

void setDefaults(const sim::TcpParams& params, const Variant& variant) {
  using namespace ns3;
  using ns3::Config::SetDefault;
  // ns-3's TcpNewReno grows with the number of ACKs instead of the bytes acknowledged, so half as
  // fast with delayed ACKs.
  SetDefault("ns3::TcpL4Protocol::SocketType",
             TypeIdValue(named(
                 {{"newreno", TcpLinuxReno::GetTypeId()},
                  {"cubic", TcpCubic::GetTypeId()},
                  {"dctcp", variant.leastWindow ? Dctcp::GetTypeId() : TcpDctcp::GetTypeId()}},
                 "control", params.control)));
  SetDefault("ns3::TcpL4Protocol::RecoveryType",
             TypeIdValue(named({{"prr", TcpPrrRecovery::GetTypeId()},
                                {"classic", TcpClassicRecovery::GetTypeId()}},
                               "reduction", variant.reduction)));
  SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));  // RFC 9438 has none
  SetDefault("ns3::TcpSocket::SegmentSize",
             UintegerValue(params.timestamps ? kSegment : kSegment + kStamp));
  SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(kInitialWindow));
  SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(params.delayedAcks ? 2 : 1));
  SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(milliseconds(params.ackDelay)));
  SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kBuffer));
  SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kBuffer));
  SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));  // senders never give up
  // ns-3's timestamps are in milliseconds, and it ignores a sample of 0 ms. Without this setting
  // the first timeout in a data centre would take one second instead of the minimum RTO.
  SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(MilliSeconds(1)));
  SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(milliseconds(params.minRto)));
  SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(params.timestamps));
}

}  // namespace braid::crosscheck
