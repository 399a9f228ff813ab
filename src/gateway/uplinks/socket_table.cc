#include "gateway/uplinks/socket_table.h"

#include <algorithm>
#include <utility>

namespace braid {

SocketTable::SocketTable(Host& host, PacketPool& pool, bool offloads, SendObserver& observer,
                         OnBatch onBatch, uint32_t mark)
    : host_(host),
      offloads_(offloads),
      mark_(mark),
      observer_(observer),
      onBatch_(std::move(onBatch)),
      batch_(pool) {}

void SocketTable::open(SocketId id, const SocketOptions& wanted) {
  SocketOptions options = wanted;
  options.offloads = offloads_;
  options.mark = mark_;
  auto entry = std::make_unique<Entry>();
  Entry* raw = entry.get();
  raw->id = id;
  entry->socket = host_.openSocket(
      id, options,
      {[this, raw] { onReadable(*raw->socket); }, [this, raw] { raw->socket->flush(observer_); }});
  entries_.push_back(std::move(entry));
}

SocketTable::Entries::const_iterator SocketTable::at(SocketId id) const {
  return std::find_if(entries_.begin(), entries_.end(),
                      [id](const auto& e) { return e->id == id; });
}

void SocketTable::close(SocketId id) {
  auto entry = at(id);
  if (entry == entries_.end()) return;
  if (!(*entry)->socket->blocked()) (*entry)->socket->flush(observer_);
  addCounters(closed_, (*entry)->socket->counters());
  std::erase(dirty_, entry->get());
  last_ = nullptr;
  entries_.erase(entry);
}

const DatagramSocket* SocketTable::find(SocketId id) const {
  auto entry = at(id);
  return entry == entries_.end() ? nullptr : (*entry)->socket.get();
}

// What is left stays in the kernel until the next turn. The event comes again as long as the socket
// is readable.
void SocketTable::onReadable(DatagramSocket& socket) {
  bool more = true;
  for (size_t taken = 0; more && taken < kTurn;) {
    std::span<ReceivedDatagram> received = socket.receive(batch_, ReceiveBatch::kSize, more);
    taken += std::max({kReadCosts, received.size(), onBatch_(received)});
  }
}

void SocketTable::send(Datagram&& datagram) {
  SocketId id = datagram.route.socket;
  if (!last_ || last_->id != id) {
    auto found = at(id);
    last_ = found == entries_.end() ? nullptr : found->get();
  }
  if (!last_) {
    ++orphans_;
    datagram.bytes.reset();
    return;
  }
  Entry& entry = *last_;
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

RunDamage* SocketTable::damageOf(SocketId id) {
  auto entry = at(id);
  return entry == entries_.end() ? nullptr : &(*entry)->damage;
}

void SocketTable::onDamage(SocketId id, uint64_t datagrams, bool always) {
  auto entry = at(id);
  if (entry == entries_.end()) return;
  (*entry)->socket->countDamaged(datagrams);
  if (always) (*entry)->socket->stopMerging();
}

SocketCounters SocketTable::counters() const {
  SocketCounters sum = closed_;
  for (const auto& entry : entries_) addCounters(sum, entry->socket->counters());
  return sum;
}

}  // namespace braid
