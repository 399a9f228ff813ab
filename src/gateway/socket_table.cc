#include "gateway/socket_table.h"

#include <algorithm>

namespace braid {

namespace {

void add(UdpSocketCounters& sum, const UdpSocketCounters& c) {
  sum.receivedDatagrams += c.receivedDatagrams;
  sum.receivedBytes += c.receivedBytes;
  sum.truncated += c.truncated;
  sum.noBuffer += c.noBuffer;
  sum.overflowed += c.overflowed;
  sum.receiveErrors += c.receiveErrors;
  sum.sentDatagrams += c.sentDatagrams;
  sum.sentBytes += c.sentBytes;
  sum.blocked += c.blocked;
  sum.queueDrops += c.queueDrops;
  sum.tooBig += c.tooBig;
  sum.noMemory += c.noMemory;
  sum.sendErrors += c.sendErrors;
}

}  // namespace

SocketTable::SocketTable(Loop& loop, PacketPool& pool, SendObserver& observer, OnDatagram onDatagram)
    : loop_(loop), observer_(observer), onDatagram_(std::move(onDatagram)), receiver_(pool) {}
SocketTable::~SocketTable() = default;

void SocketTable::open(SocketId id, const UdpSocketOptions& options) {
  auto entry = std::make_unique<Entry>(id, options);
  Entry* raw = entry.get();
  raw->watcher = std::make_unique<IoWatcher>(
      loop_, raw->socket.fd(), [this, raw] { onReadable(*raw); }, [this, raw] { flush(*raw); });
  dirty_.reserve(entries_.size() + 1);
  entries_.emplace(id, std::move(entry));
}

void SocketTable::close(SocketId id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return;
  add(closed_, at->second->socket.counters());
  std::erase(dirty_, at->second.get());
  entries_.erase(at);
}

void SocketTable::onReadable(Entry& entry) {
  bool more = true;
  for (size_t taken = 0; more && taken < kTurn; taken += UdpReceiver::kBatch) {
    for (ReceivedDatagram& r : receiver_.receive(entry.socket, UdpReceiver::kBatch, more)) onDatagram_(r);
  }
}

void SocketTable::send(Datagram&& datagram) {
  auto at = entries_.find(datagram.route.socket);
  if (at == entries_.end()) {
    ++orphans_;
    datagram.bytes.reset();
    return;
  }
  Entry& entry = *at->second;
  if (entry.socket.full() && !entry.blocked) flush(entry);
  entry.socket.enqueue(std::move(datagram));
  if (!entry.dirty) dirty_.push_back(&entry);
  entry.dirty = true;
}

void SocketTable::flush(Entry& entry) {
  entry.blocked = !entry.socket.flush(observer_);
  entry.watcher->wantWrite(entry.blocked);
}

void SocketTable::flush() {
  for (Entry* entry : dirty_) {
    entry->dirty = false;
    if (!entry->blocked) flush(*entry);
  }
  dirty_.clear();
}

UdpSocketCounters SocketTable::counters() const {
  UdpSocketCounters sum = closed_;
  for (const auto& [id, entry] : entries_) add(sum, entry->socket.counters());
  return sum;
}

}  // namespace braid
