#include "host/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace braid {

// Fills spare_ from the pool. If the pool is exhausted, the packets that are there are moved to the
// front.
size_t ReceiveBatch::prepare(size_t limit) {
  received_.clear();
  size_t end = kSize;
  for (size_t i = 0; i < end; ++i) {
    if (!spare_[i]) spare_[i] = pool_.allocate();
    while (!spare_[i] && end > i + 1) spare_[i] = std::move(spare_[--end]);
    if (!spare_[i]) end = i;
  }
  return std::min(limit, end);
}

ByteSpan ReceiveBatch::spill(size_t i) {
  if (!spills_) spills_ = std::make_unique_for_overwrite<uint8_t[]>(kSize * kLongest);
  return {spills_.get() + i * kLongest, kLongest};
}

void ReceiveBatch::take(size_t i, size_t size, const Route& from, Ecn ecn, Place place) {
  spare_[i].setSize(size);
  add(std::move(spare_[i]), from, ecn, place);
}

size_t ReceiveBatch::takeSeveral(size_t i, size_t size, size_t each, const Route& from, Ecn ecn) {
  Packet first = std::move(spare_[i]);
  size_t inRoom = std::min(size, pool_.payload());
  first.setSize(inRoom);
  size_t place = received_.size(), lost = 0;
  add({}, from, ecn, Place::kFirst);
  for (size_t begin = each; begin < size; begin += each) {
    Packet packet = pool_.allocate();
    if (!packet) {
      ++lost;
      continue;
    }
    size_t end = std::min(begin + each, size);
    size_t head = begin < inRoom ? std::min(end, inRoom) - begin : 0;
    uint8_t* to = packet.append(end - begin);
    std::copy_n(first.data() + begin, head, to);
    if (begin + head < end)
      std::copy_n(spill(i).data() + (begin + head - inRoom), end - begin - head, to + head);
    add(std::move(packet), from, ecn, Place::kLater);
  }
  first.setSize(std::min(each, size));
  received_[place].bytes = std::move(first);
  return lost;
}

namespace {
// From this many pending ICMP errors in a flush on, each counts as a refusal of its datagram.
constexpr int kPendingErrors = 8;
}  // namespace

bool DatagramSocket::enqueue(Datagram&& datagram) {
  if (full() || datagram.route.remote.address.family != family()) {
    ++counters_.queueDrops;
    datagram.bytes.reset();
    return false;
  }
  queue_.pushBack(std::move(datagram));
  return true;
}

void DatagramSocket::tell(const Datagram& refused, int error, SendObserver& observer) {
  if (error == EMSGSIZE) {
    ++counters_.tooBig;
    observer.onTooBig(refused);
    return;
  }
  bool noMemory = error == ENOBUFS || error == ENOMEM;
  ++counters_.sendErrors;
  counters_.noMemory += noMemory;
  if (!noMemory) observer.onSendError(refused, error);
}

// Counts and frees datagrams that the host took.
void DatagramSocket::release(size_t count) {
  for (; count > 0; --count) {
    ++counters_.sentDatagrams;
    counters_.sentBytes += queue_.front().bytes.size();
    queue_.popFront();
  }
}

bool DatagramSocket::flush(SendObserver& observer) {
  blocked_ = false;
  // ICMP errors for earlier datagrams, which the host reports instead of sending.
  int pendingErrors = 0;
  while (!blocked_ && !queue_.empty()) {
    int sent = send(std::min(queue_.size(), kBatch));
    if (sent > 0) {
      release(static_cast<size_t>(sent));
    } else if (sent == -EAGAIN) {
      blocked_ = true;
    } else if (sent != -ECONNREFUSED || ++pendingErrors >= kPendingErrors) {
      Datagram refused = std::move(queue_.front());
      queue_.popFront();
      tell(refused, -sent, observer);
    }
  }
  counters_.blocked += blocked_;
  watchWritable(blocked_);
  return !blocked_;
}

}  // namespace braid
