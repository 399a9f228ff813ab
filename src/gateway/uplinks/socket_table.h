#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "host/host.h"
#include "host/run_damage.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// Allocates ids for sockets, unique among those in use. An id that was released is reused only
/// after all others, so that late events of a closed socket are not taken for events of its
/// successor. 0 is never used.
class SocketIds {
 public:
  /// Returns a free id. At most 65535 are in use at a time, far more than a process has file
  /// descriptors.
  SocketId take() {
    do ++last_;
    while (last_ == 0 || used_.contains(last_));
    used_.insert(last_);
    return last_;
  }
  void release(SocketId id) { used_.erase(id); }

 private:
  SocketId last_ = 0;
  std::set<SocketId> used_;
};

/// All UDP sockets of a gateway. Reads datagrams in bounded batches and passes them on; queues and
/// flushes datagrams to send.
class SocketTable {
 public:
  /// Most work taken from one socket per turn of the loop, so that no socket starves the others.
  /// Counted in datagrams, or as OnBatch says.
  static constexpr size_t kTurn = 256;
  /// A read counts as at least this many datagrams. A socket that could merge datagrams reads 8
  /// messages at a time, and each may hold one datagram.
  static constexpr size_t kReadCosts = 8;

  /// Takes a batch that one read returned. Returns how much work it was (see kTurn).
  using OnBatch = std::function<size_t(std::span<ReceivedDatagram>)>;
  /// `offloads`, `mark`: SocketOptions::offloads and SocketOptions::mark of each socket. All
  /// references must outlive the table.
  SocketTable(Host& host, PacketPool& pool, bool offloads, SendObserver& observer, OnBatch onBatch,
              uint32_t mark = 0);

  /// Throws SystemError.
  void open(SocketId id, const SocketOptions& options);
  void close(SocketId id);
  /// nullptr: not open.
  const DatagramSocket* find(SocketId id) const;

  /// Queues a datagram on its route's socket. A datagram for a closed socket is dropped and
  /// counted.
  void send(Datagram&& datagram);
  /// Sends what is queued. What does not fit into the send buffers is sent when they have room
  /// again.
  void flush();

  /// What the socket's merged messages have shown; nullptr: it is not open.
  RunDamage* damageOf(SocketId id);
  /// Datagrams that the socket received in messages of several were damaged. `always`: that is the
  /// host's fault, so it shall merge none any more.
  void onDamage(SocketId id, uint64_t datagrams, bool always);

  /// Sums over all sockets, including closed ones.
  SocketCounters counters() const;
  /// Number of datagrams for closed sockets.
  uint64_t orphans() const { return orphans_; }

 private:
  struct Entry {
    SocketId id;
    std::unique_ptr<DatagramSocket> socket;
    RunDamage damage{};
    bool dirty = false;  // in dirty_
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;
  void onReadable(DatagramSocket& socket);
  Entries::const_iterator at(SocketId id) const;

  Host& host_;
  bool offloads_;
  uint32_t mark_;
  SendObserver& observer_;
  OnBatch onBatch_;
  ReceiveBatch batch_;
  Entries entries_;  // a few: an uplink has one or several of each family
  // The socket of the last datagram sent; most datagrams that follow use it, too.
  Entry* last_ = nullptr;
  std::vector<Entry*> dirty_;
  SocketCounters closed_;
  uint64_t orphans_ = 0;
};

}  // namespace braid
