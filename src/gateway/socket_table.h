#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "host/host.h"

namespace braid {

/// All UDP sockets of a gateway: takes datagrams in bounded batches and gives them on, queues and flushes
/// what is to be sent.
class SocketTable {
 public:
  /// Datagrams, or what comes of them, taken from one socket per turn of the loop, so that no socket starves the
  /// others.
  static constexpr size_t kTurn = 256;
  /// A read counts as so many datagrams at least. Ours: a socket that could merge datagrams reads 8 messages at a time,
  /// and they may hold one each.
  static constexpr size_t kReadCosts = 8;

  /// A batch that one read brought. Gives how much has come of it.
  using OnBatch = std::function<size_t(std::span<ReceivedDatagram>)>;
  /// `offloads`: SocketOptions::offloads of each socket; `opening`: SocketCallbacks::opening. All must outlive the
  /// table.
  SocketTable(Host& host, PacketPool& pool, bool offloads, SendObserver& observer, OnBatch onBatch,
              SocketCallbacks::Opening opening = {});

  /// Throws SystemError.
  void open(SocketId id, const SocketOptions& options);
  void close(SocketId id);
  /// nullptr: not open.
  const DatagramSocket* find(SocketId id) const;

  /// Queues a datagram on its route's socket. One for a closed socket is dropped and counted.
  void send(Datagram&& datagram);
  /// Sends what is queued; what does not fit into send buffers goes out when they have room again.
  void flush();

  /// Sends what is queued and waits for it; what does not fit into send buffers stays.
  void finish();

  /// Sums over all sockets, closed ones included.
  SocketCounters counters() const;
  /// Datagrams for sockets that are gone.
  uint64_t orphans() const { return orphans_; }

 private:
  struct Entry {
    SocketId id;
    std::unique_ptr<DatagramSocket> socket;
    bool dirty = false;  // in dirty_
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;
  void onReadable(DatagramSocket& socket);
  Entries::const_iterator at(SocketId id) const;

  Host& host_;
  bool offloads_;
  SendObserver& observer_;
  OnBatch onBatch_;
  SocketCallbacks::Opening opening_;
  ReceiveBatch batch_;
  Entries entries_;        // a few: an uplink has one or several of each family
  Entry* last_ = nullptr;  // what was sent last went there, and what follows mostly does
  std::vector<Entry*> dirty_;
  SocketCounters closed_;
  uint64_t orphans_ = 0;
};

}  // namespace braid
