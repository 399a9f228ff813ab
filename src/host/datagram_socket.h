#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/containers.h"
#include "base/field.h"
#include "base/packet.h"
#include "inet/addresses.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// A datagram as received.
struct ReceivedDatagram {
  /// Where it was in the message that the kernel gave.
  enum class Place : uint8_t {
    kAlone,
    kFirst,  ///< of several
    kLater,  ///< behind the first of several
  };
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
  Place place = Place::kAlone;
};

/// A buffer into which sockets receive, one batch at a time. Any number of sockets may share it. It
/// keeps kSize packets of the pool in reserve, so that acks can still be read when queued data has
/// exhausted the pool.
class ReceiveBatch {
 public:
  /// The most messages in a batch.
  static constexpr size_t kSize = 64;
  /// The greatest length of a message that holds several datagrams, in bytes (UDP's length field).
  static constexpr size_t kLongest = 65535;

  explicit ReceiveBatch(PacketPool& pool) : pool_(pool) {}

  /// Clears the last batch and prepares up to `limit` empty packets. Returns how many; 0 when the
  /// pool is exhausted.
  size_t prepare(size_t limit);
  /// Where to write the bytes of the i-th prepared packet.
  ByteSpan room(size_t i) { return {spare_[i].data(), pool_.payload()}; }
  /// Where to write the bytes of the i-th message that do not fit into room(i). The kernel provides
  /// memory only for parts that are written.
  ByteSpan spill(size_t i);
  /// Adds the i-th prepared packet, into which `size` bytes were written, as the batch's next
  /// datagram.
  void take(size_t i, size_t size, const Route& from, Ecn ecn,
            ReceivedDatagram::Place place = ReceivedDatagram::Place::kAlone);
  /// Adds the datagrams of a message that holds several. They have `each` bytes, except the last.
  /// `each` must fit room(i); the bytes after room(i) are in spill(i). Returns the number of
  /// datagrams that were lost because there was no packet for them.
  size_t takeSeveral(size_t i, size_t size, size_t each, const Route& from, Ecn ecn);

  std::span<ReceivedDatagram> received() { return received_; }

 private:
  using Place = ReceivedDatagram::Place;
  void add(Packet packet, const Route& from, Ecn ecn, Place place) {
    received_.push_back({from, ecn, std::move(packet), place});
  }

  PacketPool& pool_;
  std::array<Packet, kSize> spare_;
  std::unique_ptr<uint8_t[]> spills_;
  std::vector<ReceivedDatagram> received_;  ///< cleared, but never shrunk
};

struct SocketOptions {
  Address local;          ///< must have a family; all-zero bytes: any address of that family
  uint16_t port = 0;      ///< 0: the host chooses
  std::string interface;  ///< the only interface to use; empty: the routes decide
  /// No interface need have `local` yet (IP_FREEBIND): the socket receives as soon as one has.
  bool mayBeAbsent = false;
  /// Size in bytes wanted for each of the two kernel buffers. Without CAP_NET_ADMIN,
  /// net.core.[rw]mem_max limits it.
  int bufferBytes = 4 << 20;
  /// Pass many datagrams of one size and route in one message (UDP GSO and GRO), where the host
  /// supports that.
  bool offloads = false;
  /// The firewall mark of the packets that it sends, by which the host's rules choose their route;
  /// 0: none. Needs CAP_NET_ADMIN.
  uint32_t mark = 0;
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
    field::counter("socket_truncated", FieldUnit::kPackets,
                   "datagrams longer than a packet buffer (2048 bytes, or what `max-mtu` and "
                   "`device.mtu` need)",
                   &SocketDrops::truncated),
    field::counter("socket_no_buffer", FieldUnit::kPackets,
                   "datagrams received when no packet buffer was free", &SocketDrops::noBuffer),
    field::counter("socket_queue_full", FieldUnit::kPackets,
                   "256 datagrams waited already for room in a socket's send buffer",
                   &SocketDrops::queueDrops),
    field::counter("socket_send_failed", FieldUnit::kPackets,
                   "the kernel refused: no route, a firewall, no memory", &SocketDrops::sendErrors),
    field::counter("socket_too_big", FieldUnit::kPackets,
                   "datagrams above the interface's MTU; MTU probes among them",
                   &SocketDrops::tooBig));

/// Traffic through a socket.
struct SocketTraffic {
  uint64_t receivedDatagrams = 0, receivedBytes = 0, receiveErrors = 0;
  uint64_t sentDatagrams = 0, sentBytes = 0;
  uint64_t blocked = 0, noMemory = 0;
  uint64_t refusedRuns = 0, mergedDamaged = 0, mergingStopped = 0;
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
                   "times a send buffer was full; what was left was sent later",
                   &SocketTraffic::blocked),
    field::counter("socket_no_memory", FieldUnit::kPackets,
                   "of `socket_send_failed`, those for which the kernel had no memory",
                   &SocketTraffic::noMemory),
    field::counter("socket_runs_refused", FieldUnit::kNone,
                   "messages of several datagrams that the kernel refused: they were sent one by "
                   "one",
                   &SocketTraffic::refusedRuns),
    field::counter("socket_merged_damaged", FieldUnit::kPackets,
                   "datagrams of messages into which the kernel had merged several, not the first "
                   "of theirs, that were not as the peer had sealed them",
                   &SocketTraffic::mergedDamaged),
    field::counter("socket_merging_stopped", FieldUnit::kNone,
                   "sockets for which the kernel merges datagrams no more, because it damaged "
                   "them",
                   &SocketTraffic::mergingStopped));

struct SocketCounters : SocketDrops, SocketTraffic {};
template <>
inline constexpr auto kFieldsOf<SocketCounters> =
    field::table<SocketCounters>(field::base<SocketDrops>(), field::base<SocketTraffic>());

/// Is told about datagrams that the host refused. A refused datagram is freed after the call.
class SendObserver {
 public:
  virtual ~SendObserver() = default;
  /// The datagram cannot be sent on its route: ENETUNREACH, EHOSTUNREACH, ENODEV, ENETDOWN, EPERM,
  /// EACCES, EINVAL (this host no longer has the source address) and the like.
  virtual void onSendError(const Datagram& refused, int error) = 0;
  /// The datagram is larger than the interface's MTU allows.
  virtual void onTooBig(const Datagram& refused) = 0;
};

/// How a socket asks for attention. The callbacks are never called from within the socket's own
/// methods.
struct SocketCallbacks {
  std::function<void()> onReadable;
  std::function<void()> onWritable;  ///< the send buffer has room again after a blocked flush
};

/// A UDP socket with a bounded send queue. Datagrams are exchanged with the host in batches: send()
/// and receive(). They carry Don't Fragment, and only the interface's MTU limits their size.
class DatagramSocket {
 public:
  /// The most datagrams that wait for room in the send buffer.
  static constexpr size_t kQueueLimit = 256;
  /// The most datagrams per system call.
  static constexpr size_t kBatch = 64;

  /// `local`: the address that the socket is bound to, with the port that the host chose.
  DatagramSocket(SocketId id, const Endpoint& local) : id_(id), local_(local) {}
  virtual ~DatagramSocket() = default;
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;

  SocketId id() const { return id_; }
  Address::Family family() const { return local_.address.family; }
  const Endpoint& local() const { return local_; }
  const SocketCounters& counters() const { return counters_; }

  /// Appends a datagram to the send queue. When the queue is full or the address families differ,
  /// the datagram is counted and dropped (false).
  bool enqueue(Datagram&& datagram);
  /// The number of queued datagrams.
  size_t queued() const { return queue_.size(); }
  bool full() const { return queued() >= kQueueLimit; }
  /// Sends the queue in order. False when the send buffer is full and datagrams are left: call
  /// again when the socket is writable.
  bool flush(SendObserver& observer);
  /// Whether the send buffer was full at the last attempt to send.
  bool blocked() const { return blocked_; }

  /// Receives one batch of up to `limit` (at most kBatch) messages. A message is one datagram, or
  /// several where offloads are on. The result is valid until the next call with this batch; move
  /// the packets out of it. `more` tells whether the socket may have further ones.
  virtual std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) = 0;
  /// Counts datagrams that were damaged in messages of several.
  void countDamaged(uint64_t datagrams) { counters_.mergedDamaged += datagrams; }
  /// The host damages datagrams when it merges them: it shall give each as a message of its own.
  void stopMerging() {
    ++counters_.mergingStopped;
    setMerging(false);
  }

 protected:
  /// Whether the host may merge datagrams.
  virtual void setMerging(bool on) = 0;
  /// Gives the next `count` datagrams, 1 to kBatch, to the host. Returns how many it took, at least
  /// one, or -errno when it refused the first one.
  virtual int send(size_t count) = 0;
  /// Sets whether SocketCallbacks::onWritable is wanted.
  virtual void watchWritable(bool on) = 0;
  Datagram& nextAt(size_t i) { return queue_[i]; }
  SocketCounters counters_;

 private:
  void release(size_t count);
  void tell(const Datagram& refused, int error, SendObserver& observer);

  SocketId id_;
  Endpoint local_;
  Ring<Datagram> queue_;
  bool blocked_ = false;
};

}  // namespace braid
