#pragma once

#include <ns3/address.h>
#include <ns3/ipv4-address.h>
#include <ns3/node.h>
#include <ns3/nstime.h>
#include <ns3/ptr.h>
#include <ns3/socket.h>
#include <ns3/tcp-socket-state.h>
#include <cstdint>

namespace braid::crosscheck {

/// One end of a flow.
struct End {
  ns3::Ptr<ns3::Node> node;
  ns3::Ipv4Address address;
};

/// One TCP connection. It is opened beforehand, so that no result includes the handshake, and data
/// is written later.
class Flow {
 public:
  static constexpr uint64_t kEndless = UINT64_MAX;
  /// The time from which on all connections are open.
  static ns3::Time opened() { return ns3::Seconds(1); }

  /// `number`: index of this flow among all flows.
  Flow(const End& from, const End& to, uint16_t number);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  /// Writes `bytes` bytes at time `when`.
  void writeAt(ns3::Time when, uint64_t bytes);

  /// Bytes that the receiving application has read.
  uint64_t received() const { return received_; }
  /// When the last of them arrived.
  ns3::Time lastAt() const { return lastAt_; }
  uint64_t timeouts() const { return timeouts_; }
  uint64_t fastRecoveries() const { return fastRecoveries_; }

 private:
  void connect(const End& from, const ns3::Address& to);
  void write(uint64_t bytes);
  void send(ns3::Ptr<ns3::Socket>, uint32_t);
  void accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address&);
  void receive(ns3::Ptr<ns3::Socket> socket);
  void onRto(ns3::Time before, ns3::Time after);
  void onState(ns3::TcpSocketState::TcpCongState_t before,
               ns3::TcpSocketState::TcpCongState_t after);

  ns3::Ptr<ns3::Socket> listener_, sender_;
  uint64_t toSend_ = 0, received_ = 0, timeouts_ = 0, fastRecoveries_ = 0;
  ns3::Time lastAt_;
};

}  // namespace braid::crosscheck
