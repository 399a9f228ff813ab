#include "gateway/socket_table.h"

#include <algorithm>
#include <utility>

namespace braid {

SocketTable::SocketTable(Host& host, PacketPool& pool, bool offloads, SendObserver& observer,
                         OnDatagram onDatagram, OnBatch onBatch)
    : host_(host),
      offloads_(offloads),
      observer_(observer),
      onDatagram_(std::move(onDatagram)),
      onBatch_(std::move(onBatch)),
      batch_(pool) {}

void SocketTable::open(SocketId id, const SocketOptions& wanted) {
  SocketOptions options = wanted;
  options.offloads = offloads_;
  auto entry = std::make_unique<Entry>();
  Entry* raw = entry.get();
  entry->socket = host_.openSocket(
      id, options,
      {[this, raw] { onReadable(*raw->socket); }, [this, raw] { raw->socket->flush(observer_); }});
  entries_.emplace(id, std::move(entry));
}

void SocketTable::close(SocketId id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return;
  addCounters(closed_, at->second->socket->counters());
  std::erase(dirty_, at->second.get());
  entries_.erase(at);
}

const DatagramSocket* SocketTable::find(SocketId id) const {
  auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second->socket.get();
}

// What is left stays in the kernel until the next turn: it comes back as long as the socket is readable.
void SocketTable::onReadable(DatagramSocket& socket) {
  bool more = true;
  for (size_t taken = 0; more && taken < kTurn;) {
    std::span<ReceivedDatagram> received = socket.receive(batch_, ReceiveBatch::kSize, more);
    for (ReceivedDatagram& r : received) onDatagram_(r);
    taken += std::max({ReceiveBatch::kSize, received.size(), onBatch_()});
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
  if (entry.socket->full() && !entry.socket->blocked()) entry.socket->flush(observer_);
  entry.socket->enqueue(std::move(datagram));
  if (!entry.dirty) dirty_.push_back(&entry);
  entry.dirty = true;
}

void SocketTable::flush() {
  for (Entry* entry : dirty_) {
    entry->dirty = false;
    if (!entry->socket->blocked()) entry->socket->flush(observer_);
  }
  dirty_.clear();
}

SocketCounters SocketTable::counters() const {
  SocketCounters sum = closed_;
  for (const auto& [id, entry] : entries_) addCounters(sum, entry->socket->counters());
  return sum;
}

}  // namespace braid
