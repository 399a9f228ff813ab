#include "evaluation/ns3/flow.h"

#include <ns3/callback.h>
#include <ns3/inet-socket-address.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>
#include <ns3/tcp-socket-factory.h>
#include <algorithm>
#include <stdexcept>
#include <string>

namespace braid::crosscheck {

namespace {

constexpr uint16_t kFirstPort = 5000;
constexpr uint32_t kChunk =
    64 * 1448;  // bytes of one write, so that ns-3 need not split packets of megabytes

template <typename Result>
void require(Result done, const char* what) {
  if (static_cast<int64_t>(done) < 0)
    throw std::runtime_error(std::string("ns-3 refuses to ") + what);
}

}  // namespace

Flow::Flow(const End& from, const End& to, uint16_t number) {
  using namespace ns3;
  InetSocketAddress there(to.address, kFirstPort + number);
  listener_ = Socket::CreateSocket(to.node, TcpSocketFactory::GetTypeId());
  require(listener_->Bind(there), "bind a listener");
  require(listener_->Listen(), "listen");
  listener_->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                               MakeCallback(&Flow::accept, this));
  // Queues are set up at time 0. Connections are opened one after the other, so that no handshake
  // meets a queue.
  Simulator::Schedule(MilliSeconds(1) + MicroSeconds(100) * number, &Flow::connect, this, from,
                      Address(there));
}

void Flow::connect(const End& from, const ns3::Address& to) {
  using namespace ns3;
  sender_ = Socket::CreateSocket(from.node, TcpSocketFactory::GetTypeId());
  require(sender_->Bind(InetSocketAddress(from.address, 0)), "bind a sender");
  require(sender_->TraceConnectWithoutContext("RTO", MakeCallback(&Flow::onRto, this)) ? 0 : -1,
          "watch timeouts");
  require(
      sender_->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::onState, this)) ? 0 : -1,
      "watch recoveries");
  require(sender_->Connect(to), "connect");
  sender_->SetSendCallback(MakeCallback(&Flow::send, this));
}

void Flow::writeAt(ns3::Time when, uint64_t bytes) {
  ns3::Simulator::Schedule(when - ns3::Simulator::Now(), &Flow::write, this, bytes);
}

void Flow::write(uint64_t bytes) {
  toSend_ = bytes;
  send(sender_, sender_->GetTxAvailable());
}

void Flow::send(ns3::Ptr<ns3::Socket>, uint32_t) {
  while (toSend_ > 0) {
    auto bytes =
        static_cast<uint32_t>(std::min<uint64_t>({toSend_, sender_->GetTxAvailable(), kChunk}));
    if (bytes == 0) return;
    require(sender_->Send(ns3::Create<ns3::Packet>(bytes)), "send");
    if (toSend_ != kEndless) toSend_ -= bytes;
  }
}

void Flow::accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
  socket->SetRecvCallback(ns3::MakeCallback(&Flow::receive, this));
}

void Flow::receive(ns3::Ptr<ns3::Socket> socket) {
  while (auto packet = socket->Recv()) {
    received_ += packet->GetSize();
    lastAt_ = ns3::Simulator::Now();
  }
}

// Counts timeouts. ns-3 has no counter for them, but it doubles the RTO at each timeout (RFC 6298
// section 5.5) and at no other time.
void Flow::onRto(ns3::Time before, ns3::Time after) {
  timeouts_ += after == before * 2;
}

void Flow::onState(ns3::TcpSocketState::TcpCongState_t, ns3::TcpSocketState::TcpCongState_t after) {
  fastRecoveries_ += after == ns3::TcpSocketState::CA_RECOVERY;
}

}  // namespace braid::crosscheck
