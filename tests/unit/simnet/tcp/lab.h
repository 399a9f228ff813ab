#pragma once

// Two hosts, one connection from left to right, and a record of every packet.

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "simnet/tcp/connection.h"
#include "simnet/wired_pair.h"

namespace braid::sim::tcp {

/// A packet as sent, and whether it was lost.
struct Seen {
  Time at;
  bool fromClient = false;
  TcpFields tcp;
  TcpOptionFields options;
  Ecn ecn = Ecn::kNotEct;
  uint64_t offset = 0;  ///< of the stream
  bool lost = false;
};

struct LabOptions {
  Options tcp{};
  LinkOptions forth{.rateBitsPerSecond = 100e6, .delay = 10ms};
  LinkOptions back{.rateBitsPerSecond = 100e6, .delay = 10ms};
  uint64_t seed = 1;
};

class Lab {
 public:
  explicit Lab(const LabOptions& options)
      : net(options.forth, options.back, options.seed),
        connection(hooked(), net.left(), net.right(), {1000, 80}, options.tcp) {}

  /// Numbers of the client's data packets to lose, counted from 1.
  std::set<uint64_t> loseData;
  /// Numbers of the client's data packets to mark CE.
  std::set<uint64_t> markData;
  /// Numbers of the client's data packets to delay by `delayBy`.
  std::set<uint64_t> delayData;
  Duration delayBy{};
  /// Called with each packet; returning true loses it.
  std::function<bool(const Seen&)> lose;

  /// Writes a message at the client. It is added to `arrived` when it has arrived.
  void write(uint64_t bytes) {
    connection.client().send(bytes, [this](const Message& m) { arrived.push_back(m); });
  }
  Endpoint& client() { return connection.client(); }
  Endpoint& server() { return connection.server(); }
  const SenderStats& stats() { return client().stats(); }
  /// The client's data packets.
  std::vector<Seen> data() const {
    std::vector<Seen> result;
    for (const Seen& s : packets) {
      if (s.fromClient && s.tcp.payloadLength > 0) result.push_back(s);
    }
    return result;
  }
  /// The server's packets without data after its SYN-ACK.
  std::vector<Seen> acks() const {
    std::vector<Seen> result;
    for (const Seen& s : packets) {
      if (!s.fromClient && s.tcp.payloadLength == 0 && !s.tcp.isSyn()) result.push_back(s);
    }
    return result;
  }

  WiredPair net;
  std::vector<Seen> packets;
  std::vector<Message> arrived;

 private:
  WiredPair& hooked() {
    net.left().onSend = [this](ByteView p, const InnerPacket& ip) { return onSend(p, ip, true); };
    net.right().onSend = [this](ByteView p, const InnerPacket& ip) { return onSend(p, ip, false); };
    return net;
  }
  bool onSend(ByteView packet, const InnerPacket& ip, bool fromClient) {
    EXPECT_TRUE(checksumsValid(packet, ip));
    if (again_) return true;
    Seen s{net.now(), fromClient, *ip.tcp, tcpOptionsOf(packet, ip), ip.ecn};
    uint32_t& isn = fromClient ? clientIsn_ : serverIsn_;
    if (s.tcp.isSyn()) isn = s.tcp.seq;
    s.offset = s.tcp.seq - isn - 1;
    bool isData = fromClient && s.tcp.payloadLength > 0;
    uint64_t number = isData ? ++dataCount_ : 0;
    s.lost = (isData && loseData.contains(number)) || (lose && lose(s));
    packets.push_back(s);
    bool late = isData && delayData.contains(number), marked = isData && markData.contains(number);
    if (!late && !marked) return !s.lost;
    Bytes bytes(packet.begin(), packet.end());
    if (marked) (void)markCe(ByteSpan(bytes));
    if (!late) return pass(bytes);
    net.after(delayBy, [this, bytes] { pass(bytes); });
    return false;
  }
  /// Sends `bytes` instead of the packet that was held back.
  bool pass(const Bytes& bytes) {
    again_ = true;
    net.left().send(bytes);
    again_ = false;
    return false;
  }

  uint64_t dataCount_ = 0;
  uint32_t clientIsn_ = 0, serverIsn_ = 0;
  bool again_ = false;

 public:
  Connection connection;
};

}  // namespace braid::sim::tcp
