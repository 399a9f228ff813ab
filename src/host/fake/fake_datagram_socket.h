#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "host/datagram_socket.h"

namespace braid {

/// A datagram on the wire between two fake hosts.
struct FakeDatagram {
  Endpoint from, to;
  Ecn ecn = Ecn::kNotEct;
  std::vector<uint8_t> bytes;
};

/// A socket whose host is a test: takes and refuses what the test wants.
class FakeDatagramSocket final : public DatagramSocket {
 public:
  using OnSent = std::function<void(FakeDatagram&&)>;

  FakeDatagramSocket(SocketId id, const SocketOptions& options, SocketCallbacks callbacks, OnSent onSent,
                     std::function<void()> onClosed);
  ~FakeDatagramSocket() override { onClosed_(); }

  const SocketOptions& options() const { return options_; }

  /// IP packets above so many bytes are refused with EMSGSIZE.
  void setMtu(size_t mtu) { mtu_ = mtu; }
  /// Every datagram is refused with this errno from now on; 0: taken again.
  void refuse(int error) { error_ = error; }
  /// The send buffer takes so many datagrams more. The socket becomes writable when it was waited for.
  void setRoom(size_t datagrams);
  /// A datagram comes in.
  void put(const FakeDatagram& datagram);

  std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) override;

 protected:
  int send(size_t count) override;
  void watchWritable(bool on) override { watched_ = on; }

 private:
  int refusal(const Datagram& datagram) const;

  SocketOptions options_;
  SocketCallbacks callbacks_;
  OnSent onSent_;
  std::function<void()> onClosed_;
  std::deque<FakeDatagram> in_;
  size_t mtu_ = SIZE_MAX;
  size_t room_ = SIZE_MAX;
  int error_ = 0;
  bool watched_ = false;
};

}  // namespace braid
