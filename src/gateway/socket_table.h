#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gateway/loop.h"
#include "gateway/udp_socket.h"
#include "gateway/uplink.h"

namespace braid {

/// All UDP sockets of the daemon with their watchers: takes datagrams in bounded batches and gives them on,
/// queues and flushes what is to be sent.
class SocketTable : public UplinkSockets {
 public:
  /// Datagrams taken from one socket per turn of the loop, so that no socket starves the others.
  static constexpr size_t kTurn = 256;

  using OnDatagram = std::function<void(ReceivedDatagram&)>;
  /// All must outlive the table.
  SocketTable(Loop& loop, PacketPool& pool, SendObserver& observer, OnDatagram onDatagram);
  ~SocketTable() override;

  void open(SocketId id, const UdpSocketOptions& options) override;
  void close(SocketId id) override;

  /// Queues a datagram on its route's socket. One for a closed socket is dropped and counted.
  void send(Datagram&& datagram);
  /// Sends what is queued; what does not fit into send buffers goes out when they have room again.
  void flush();

  /// Sums over all sockets, closed ones included.
  UdpSocketCounters counters() const;
  /// Datagrams for sockets that are gone.
  uint64_t orphans() const { return orphans_; }

 private:
  struct Entry {
    Entry(SocketId id, const UdpSocketOptions& options) : socket(id, options) {}
    UdpSocket socket;
    bool dirty = false;    // in dirty_
    bool blocked = false;  // waits for room to write
    std::unique_ptr<IoWatcher> watcher;
  };
  void onReadable(Entry& entry);
  void flush(Entry& entry);

  Loop& loop_;
  SendObserver& observer_;
  OnDatagram onDatagram_;
  UdpReceiver receiver_;
  std::map<SocketId, std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> dirty_;
  UdpSocketCounters closed_;
  uint64_t orphans_ = 0;
};

}  // namespace braid
