#pragma once

#include <memory>

#include "host/datagram_socket.h"
#include "host/linux/loop.h"
#include "host/linux/workers.h"
#include "host/system.h"

namespace braid {

/// A non-blocking UDP socket of the kernel. A batch is one system call. Path MTUs that the kernel
/// learned by ICMP are ignored (RFC 8899 section 4.6.1 leaves them to the prober). Link-local IPv6
/// remotes work only on sockets that are bound to an interface.
class UdpSocket final : public DatagramSocket {
 public:
  /// Throws SystemError.
  UdpSocket(SocketId id, const SocketOptions& options);
  ~UdpSocket() override;

  int fd() const { return fd_.get(); }
  /// Makes the callbacks be called on the loop. `workers`: threads that may send and receive large
  /// batches; they must outlive this.
  void watch(Loop& loop, SocketCallbacks callbacks, Workers* workers = nullptr);

  std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) override;

 protected:
  int send(size_t count) override;
  void watchWritable(bool on) override;
  bool handOver(size_t count) override;
  bool hasSent(bool tell) override;
  void awaitSending() override;

 private:
  struct Ahead;
  UdpSocket(SocketId id, UniqueFd fd);
  bool hasWorkers() const { return workers_ && workers_->started(); }
  bool fill(ReceiveBatch& batch, size_t want, SocketCounters& counters);
  void readAhead();
  std::span<ReceivedDatagram> takeAhead();
  bool dropOne();
  size_t runAt(size_t i, size_t end);
  int sendOne();

  UniqueFd fd_;
  bool gathers_ = false;     ///< runs of datagrams may be sent as one message (UDP_SEGMENT)
  bool merges_ = false;      ///< the kernel may give several datagrams as one message (UDP_GRO)
  uint32_t overflowed_ = 0;  ///< the kernel's counter of overflows at the last read
  std::function<void()> onReadable_;
  SocketCallbacks::Opening opening_;
  std::unique_ptr<IoWatcher> watcher_;
  Workers* workers_ = nullptr;
  std::unique_ptr<Job> sending_;
  std::unique_ptr<Ahead> ahead_;
};

}  // namespace braid
