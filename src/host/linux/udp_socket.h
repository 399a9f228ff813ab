#pragma once

#include <memory>

#include "host/datagram_socket.h"
#include "host/linux/loop.h"
#include "host/system.h"

namespace braid {

/// A non-blocking UDP socket of the kernel. A batch is one system call. Path MTUs that the kernel
/// learned by ICMP are ignored (RFC 8899 section 4.6.1 leaves them to the prober). Link-local IPv6
/// remotes work only on sockets that are bound to an interface.
class UdpSocket final : public DatagramSocket {
 public:
  /// Throws SystemError.
  UdpSocket(SocketId id, const SocketOptions& options);

  int fd() const { return fd_.get(); }
  /// Makes the callbacks be called on the loop.
  void watch(Loop& loop, SocketCallbacks callbacks);

  std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) override;

 protected:
  int send(size_t count) override;
  void setMerging(bool on) override;
  void watchWritable(bool on) override;

 private:
  UdpSocket(SocketId id, UniqueFd fd);
  bool fill(ReceiveBatch& batch, size_t want);
  bool dropOne();
  size_t runAt(size_t i, size_t end);
  int sendOne();
  void onRunRefused(int error);

  /// Runs of datagrams are no longer sent as one message after this many refusals in a row.
  static constexpr int kMostRefusals = 4;

  UniqueFd fd_;
  bool gathers_ = false;     ///< runs of datagrams may be sent as one message (UDP_SEGMENT)
  bool merges_ = false;      ///< the kernel may give several datagrams as one message (UDP_GRO)
  int refusals_ = 0;         ///< refused runs in a row
  uint32_t overflowed_ = 0;  ///< the kernel's counter of overflows at the last read
  std::unique_ptr<IoWatcher> watcher_;
};

}  // namespace braid
