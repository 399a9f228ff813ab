#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/ring.h"
#include "host/receive_batch.h"
#include "tunnel/subflow/datagram.h"

namespace braid {

struct SocketOptions {
  Address local;          ///< a family is needed; all-zero bytes: any address of that family
  uint16_t port = 0;      ///< 0: the host chooses
  std::string interface;  ///< the only one to use; empty: routes decide
  /// Bytes wanted for either kernel buffer; what net.core.[rw]mem_max allows without CAP_NET_ADMIN.
  int bufferBytes = 4 << 20;
};

struct SocketCounters {
  uint64_t receivedDatagrams = 0, receivedBytes = 0;
  uint64_t truncated = 0;   ///< longer than the pool's payload: dropped
  uint64_t noBuffer = 0;    ///< pool exhausted: dropped
  uint64_t overflowed = 0;  ///< dropped by the host since the receive buffer was full (SO_RXQ_OVFL)
  uint64_t receiveErrors = 0;
  uint64_t sentDatagrams = 0, sentBytes = 0;
  uint64_t blocked = 0;     ///< flushes that ended because the send buffer was full
  uint64_t queueDrops = 0;  ///< datagrams not taken since the queue was at its bound
  uint64_t tooBig = 0;      ///< EMSGSIZE
  uint64_t noMemory = 0;    ///< ENOBUFS, ENOMEM: lost in the host
  uint64_t sendErrors = 0;  ///< refused for a reason of the route

  SocketCounters& operator+=(const SocketCounters& other);
};

/// Told of datagrams that the host refused. A refused datagram is gone after the call.
class SendObserver {
 public:
  virtual ~SendObserver() = default;
  /// No way out on the datagram's route: ENETUNREACH, EHOSTUNREACH, ENODEV, ENETDOWN, EPERM, EACCES, EINVAL
  /// (source address is no longer ours) and the like.
  virtual void onSendError(const Datagram& refused, int error) = 0;
  /// The datagram is larger than the interface's MTU allows.
  virtual void onTooBig(const Datagram& refused) = 0;
};

/// How a socket asks for attention. Neither callback comes from inside of the socket's own methods.
struct SocketCallbacks {
  std::function<void()> onReadable;
  std::function<void()> onWritable;  ///< there is room again after a flush that was blocked
};

/// A UDP socket with a bounded queue of what waits to be sent. What crosses the border to the host are
/// batches: send() and receive(). Datagrams carry Don't Fragment and are limited by the interface's MTU only.
class DatagramSocket {
 public:
  /// Datagrams that wait for room in the send buffer, at most.
  static constexpr size_t kQueueLimit = 256;
  /// Datagrams per system call.
  static constexpr size_t kBatch = 64;

  /// `local`: what the socket is bound to, with the port that the host chose.
  DatagramSocket(SocketId id, const Endpoint& local) : id_(id), local_(local) {}
  virtual ~DatagramSocket() = default;
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;

  SocketId id() const { return id_; }
  Address::Family family() const { return local_.address.family; }
  const Endpoint& local() const { return local_; }
  const SocketCounters& counters() const { return counters_; }

  /// Appends to the queue; false when it is full or the families differ: the datagram is counted and gone.
  bool enqueue(Datagram&& datagram);
  size_t queued() const { return queue_.size(); }
  bool full() const { return queue_.size() == kQueueLimit; }
  /// Sends the queue in order. False when the send buffer filled up and datagrams are left: flush again when
  /// the socket is writable.
  bool flush(SendObserver& observer);
  /// The last flush() gave false.
  bool blocked() const { return blocked_; }

  /// One batch: up to `limit` (at most kBatch) datagrams, valid until the next call with this batch; move the
  /// packets out. `more` tells whether the socket may hold further ones.
  virtual std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) = 0;

 protected:
  /// Hands the first `count` queued datagrams to the host, 1 to kBatch. Gives how many it took, or -errno
  /// when it refused the first one.
  virtual int send(size_t count) = 0;
  /// Whether SocketCallbacks::onWritable is wanted.
  virtual void watchWritable(bool on) = 0;

  Datagram& queuedAt(size_t i) { return queue_[i]; }
  SocketCounters counters_;

 private:
  bool sendQueue(SendObserver& observer);
  void refuseFront(int error, SendObserver& observer);

  SocketId id_;
  Endpoint local_;
  Ring<Datagram> queue_;
  bool blocked_ = false;
};

}  // namespace braid
