#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/packet.h"
#include "gateway/system.h"
#include "inet/endpoint.h"
#include "tunnel/tunnel.h"

namespace braid {

struct UdpSocketOptions {
  Address local;          ///< a family is needed; all-zero bytes: any address of that family
  uint16_t port = 0;      ///< 0: the kernel chooses
  std::string interface;  ///< SO_BINDTODEVICE; empty: routes decide
  /// Bytes wanted for either kernel buffer; what net.core.[rw]mem_max allows without CAP_NET_ADMIN.
  int bufferBytes = 4 << 20;
};

struct UdpSocketCounters {
  uint64_t receivedDatagrams = 0, receivedBytes = 0;
  uint64_t truncated = 0;   ///< longer than the pool's payload: dropped
  uint64_t noBuffer = 0;    ///< pool exhausted: dropped
  uint64_t overflowed = 0;  ///< dropped by the kernel since the receive buffer was full (SO_RXQ_OVFL)
  uint64_t receiveErrors = 0;
  uint64_t sentDatagrams = 0, sentBytes = 0;
  uint64_t blocked = 0;     ///< flushes that ended because the send buffer was full
  uint64_t queueDrops = 0;  ///< datagrams not taken since the queue was at its bound
  uint64_t tooBig = 0;      ///< EMSGSIZE
  uint64_t noMemory = 0;    ///< ENOBUFS, ENOMEM: lost in the host
  uint64_t sendErrors = 0;  ///< refused for a reason of the route
};

/// Told what became of datagrams that the kernel refused.
class SendObserver {
 public:
  virtual ~SendObserver() = default;
  /// No way out on this route: ENETUNREACH, EHOSTUNREACH, ENODEV, ENETDOWN, EPERM, EACCES, EINVAL (source
  /// address is no longer ours) and the like.
  virtual void onSendError(const Route& route, int error) = 0;
  /// `size` bytes of UDP payload are more than the interface's MTU allows.
  virtual void onTooBig(const Route& route, size_t size, bool mtuProbe) = 0;
};

/// A non-blocking UDP socket that sends in batches. Datagrams carry Don't Fragment and are limited by the
/// interface's MTU only: what ICMP told the kernel about the path is ignored (RFC 8899 section 4.6.1 leaves
/// that to the prober). Link-local IPv6 remotes work on sockets that are bound to an interface only.
class UdpSocket {
 public:
  /// Datagrams that wait for room in the send buffer, at most.
  static constexpr size_t kQueueLimit = 256;
  /// Datagrams per system call.
  static constexpr size_t kBatch = 64;

  /// Throws SystemError.
  UdpSocket(SocketId id, const UdpSocketOptions& options);

  SocketId id() const { return id_; }
  int fd() const { return fd_.get(); }
  Address::Family family() const { return local_.address.family; }
  /// What the socket is bound to, with the port that the kernel chose.
  const Endpoint& local() const { return local_; }
  const UdpSocketCounters& counters() const { return counters_; }

  /// Appends to the queue; false when it is full or the families differ: the datagram is counted and gone.
  bool enqueue(Datagram&& datagram);
  size_t queued() const { return count_; }
  bool full() const { return count_ == kQueueLimit; }
  /// Sends the queue in order. Returns false when the send buffer filled up and datagrams are left: flush
  /// again when the socket is writable.
  bool flush(SendObserver& observer);

 private:
  friend class UdpReceiver;
  Datagram& queuedAt(size_t i) { return queue_[(head_ + i) % kQueueLimit]; }
  void popFront();
  void refuseFront(int error, SendObserver& observer);

  SocketId id_;
  UniqueFd fd_;
  Endpoint local_;
  UdpSocketCounters counters_;
  std::vector<Datagram> queue_;  // ring of kQueueLimit
  size_t head_ = 0;
  size_t count_ = 0;
};

/// A datagram as it came.
struct ReceivedDatagram {
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
};

/// Receives batches for any number of sockets. It keeps kBatch packets of the pool at hand, so that acks can
/// still be read when the pool is exhausted by queued data.
class UdpReceiver {
 public:
  static constexpr size_t kBatch = 64;

  explicit UdpReceiver(PacketPool& pool);
  ~UdpReceiver();

  /// One system call: up to `limit` (at most kBatch) datagrams, valid until the next call; move the packets
  /// out. `more` tells whether the socket may hold further ones.
  std::span<ReceivedDatagram> receive(UdpSocket& socket, size_t limit, bool& more);

 private:
  struct Slots;
  size_t prepare(size_t limit);
  void dropOne(UdpSocket& socket, bool& more);

  PacketPool& pool_;
  std::unique_ptr<Slots> slots_;
  std::array<Packet, kBatch> spare_;
  std::array<ReceivedDatagram, kBatch> received_;
};

}  // namespace braid
