#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/field.h"
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
  bool offloads = false;  ///< many datagrams of one size and route in one message, where the host can
};

/// Datagrams that a socket lost.
struct SocketDrops {
  uint64_t overflowed = 0, truncated = 0, noBuffer = 0;
  uint64_t queueDrops = 0, sendErrors = 0, tooBig = 0;
};
template <>
inline constexpr auto kFieldsOf<SocketDrops> = field::table<SocketDrops>(
    field::counter("socket_overflow", FieldUnit::kPackets,
                   "the daemon did not read in time: the kernel's receive buffer was full",
                   &SocketDrops::overflowed),
    field::counter(
        "socket_truncated", FieldUnit::kPackets,
        "datagrams longer than a packet buffer (2048 bytes, or what `max-mtu` and `device.mtu` need)",
        &SocketDrops::truncated),
    field::counter("socket_no_buffer", FieldUnit::kPackets,
                   "datagrams received when no packet buffer was free", &SocketDrops::noBuffer),
    field::counter("socket_queue_full", FieldUnit::kPackets,
                   "256 datagrams waited already for room in a socket's send buffer",
                   &SocketDrops::queueDrops),
    field::counter("socket_send_failed", FieldUnit::kPackets,
                   "the kernel refused: no route, a firewall, no memory", &SocketDrops::sendErrors),
    field::counter("socket_too_big", FieldUnit::kPackets,
                   "datagrams above the interface's MTU; MTU probes among them", &SocketDrops::tooBig));

/// What went through a socket.
struct SocketTraffic {
  uint64_t receivedDatagrams = 0, receivedBytes = 0, receiveErrors = 0;
  uint64_t sentDatagrams = 0, sentBytes = 0;
  uint64_t blocked = 0, noMemory = 0;
};
template <>
inline constexpr auto kFieldsOf<SocketTraffic> = field::table<SocketTraffic>(
    field::counter("socket_received_packets", FieldUnit::kPackets, "datagrams received",
                   &SocketTraffic::receivedDatagrams),
    field::counter("socket_received_bytes", FieldUnit::kBytes, "UDP payload received",
                   &SocketTraffic::receivedBytes),
    field::counter("socket_receive_errors", FieldUnit::kNone, "reads that failed",
                   &SocketTraffic::receiveErrors),
    field::counter("socket_sent_packets", FieldUnit::kPackets, "datagrams that the kernel took",
                   &SocketTraffic::sentDatagrams),
    field::counter("socket_sent_bytes", FieldUnit::kBytes, "UDP payload that the kernel took",
                   &SocketTraffic::sentBytes),
    field::counter("socket_blocked", FieldUnit::kNone,
                   "times a send buffer was full; what was left went later", &SocketTraffic::blocked),
    field::counter("socket_no_memory", FieldUnit::kPackets,
                   "of `socket_send_failed`, those for which the kernel had no memory",
                   &SocketTraffic::noMemory));

struct SocketCounters : SocketDrops, SocketTraffic {};
template <>
inline constexpr auto kFieldsOf<SocketCounters> = field::table<SocketCounters>(field::base<SocketDrops>(),
                                                                               field::base<SocketTraffic>());

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
  /// How a datagram that came would be opened, for sockets that have other threads do that.
  using Opening = std::function<CipherWork(ByteView)>;
  std::function<void()> onReadable;
  std::function<void()> onWritable;  ///< there is room again after a flush that was blocked
  Opening opening{};                 ///< empty: the core opens itself
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
  DatagramSocket(SocketId id, const Endpoint& local) : id_(id), local_(local) {
    refused_.reserve(kQueueLimit);
  }
  virtual ~DatagramSocket() = default;
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;

  SocketId id() const { return id_; }
  Address::Family family() const { return local_.address.family; }
  const Endpoint& local() const { return local_; }
  const SocketCounters& counters() const { return counters_; }

  /// Appends to the queue; false when it is full or the families differ: the datagram is counted and gone.
  bool enqueue(Datagram&& datagram);
  /// Datagrams that wait, without those that another thread is sending.
  size_t queued() const { return queue_.size() + (sending_ ? 0 : leaving_.size()); }
  bool full() const { return queued() >= kQueueLimit; }
  /// Sends the queue in order. False when the send buffer filled up and datagrams are left: flush again when
  /// the socket is writable. Another thread may do it, where the host has one: what is queued meanwhile follows by
  /// itself, and the observer is told later, and must live on.
  bool flush(SendObserver& observer);
  /// Waits for what another thread is sending, and sends the rest. What does not fit the send buffer stays.
  void finish(SendObserver& observer);
  /// The last flush() gave false.
  bool blocked() const { return blocked_; }

  /// One batch: up to `limit` (at most kBatch) messages of the host, each of which is one datagram, or several where
  /// offloads are on; valid until the next call with this batch; move the packets out. `more` tells whether the socket
  /// may hold further ones.
  virtual std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) = 0;

 protected:
  /// Hands the next `count` datagrams to the host, 1 to kBatch. Gives how many it took, at least one, or -errno
  /// when it refused the first one.
  virtual int send(size_t count) = 0;
  /// Whether SocketCallbacks::onWritable is wanted.
  virtual void watchWritable(bool on) = 0;
  /// Begins to have sendLeaving() called by another thread, and then, by this one, onSent(). False: there is none, or
  /// it is not worth it for so many datagrams.
  virtual bool handOver(size_t) { return false; }
  /// Whether that other thread has called sendLeaving(): then onSent() is not called. `tell`: else it will be soon.
  virtual bool hasSent(bool) { return false; }
  /// Waits until that other thread has called sendLeaving(); onSent() is not called.
  virtual void awaitSending() {}

  Datagram& nextAt(size_t i) { return leaving_[next_ + i]; }
  /// `lane`: the thread's, for the cipher.
  /// True when not all have left: then onSent() is due.
  bool sendLeaving(unsigned lane);
  void onSent();
  SocketCounters counters_;

 private:
  struct Refusal {
    size_t place;  // in leaving_
    int error;
  };
  size_t sealSome(unsigned lane);
  void send(SendObserver& observer, bool here);
  void endSending(SendObserver& observer);
  void settle(SendObserver& observer);
  void tell(const Datagram& refused, int error, SendObserver& observer);

  SocketId id_;
  Endpoint local_;
  Ring<Datagram> queue_;
  Ring<Datagram> leaving_;  ///< those before `next_` have left
  size_t next_ = 0;
  std::vector<Refusal> refused_;  ///< of those that left
  bool stuck_ = false;            ///< the send buffer had no room for the next one
  bool blocked_ = false;
  bool sending_ = false;              ///< another thread has the four above, and send()
  SendObserver* observer_ = nullptr;  ///< of that
};

}  // namespace braid
