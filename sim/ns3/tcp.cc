#include "sim/ns3/tcp.h"

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/nstime.h>
#include <ns3/tcp-classic-recovery.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-dctcp.h>
#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-prr-recovery.h>
#include <ns3/type-id.h>
#include <ns3/uinteger.h>
#include <map>
#include <stdexcept>

#include "sim/ns3/units.h"

namespace braid::crosscheck {

namespace {

ns3::TypeId named(const std::map<std::string, ns3::TypeId>& types, const char* kind,
                  const std::string& name) {
  auto found = types.find(name);
  if (found == types.end()) throw std::runtime_error(std::string("no ") + kind + " " + name);
  return found->second;
}

}  // namespace

void setDefaults(const TcpSettings& settings) {
  using namespace ns3;
  using ns3::Config::SetDefault;
  // ns-3's own TcpNewReno grows by ACKs instead of by what they acknowledge, half as fast with delayed ACKs.
  SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(named({{"newreno", TcpLinuxReno::GetTypeId()},
                                                                  {"cubic", TcpCubic::GetTypeId()},
                                                                  {"dctcp", TcpDctcp::GetTypeId()}},
                                                                 "control", settings.control)));
  SetDefault(
      "ns3::TcpL4Protocol::RecoveryType",
      TypeIdValue(named({{"prr", TcpPrrRecovery::GetTypeId()}, {"classic", TcpClassicRecovery::GetTypeId()}},
                        "recovery", settings.recovery)));
  SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(settings.segment));
  SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(settings.initialWindow));
  SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(settings.ackEvery));
  SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(milliseconds(settings.ackDelay)));
  SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(settings.buffer));
  SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(settings.buffer));
  SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));  // nobody gives up
  SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(milliseconds(settings.minRto)));
  SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(settings.sack));
  SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(settings.timestamps));
}

}  // namespace braid::crosscheck
