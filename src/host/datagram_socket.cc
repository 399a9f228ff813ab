#include "host/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace braid {

SocketCounters& SocketCounters::operator+=(const SocketCounters& other) {
  receivedDatagrams += other.receivedDatagrams;
  receivedBytes += other.receivedBytes;
  truncated += other.truncated;
  noBuffer += other.noBuffer;
  overflowed += other.overflowed;
  receiveErrors += other.receiveErrors;
  sentDatagrams += other.sentDatagrams;
  sentBytes += other.sentBytes;
  blocked += other.blocked;
  queueDrops += other.queueDrops;
  tooBig += other.tooBig;
  noMemory += other.noMemory;
  sendErrors += other.sendErrors;
  return *this;
}

bool DatagramSocket::enqueue(Datagram&& datagram) {
  if (full() || datagram.route.remote.address.family != family()) {
    ++counters_.queueDrops;
    datagram.bytes.reset();
    return false;
  }
  queue_.pushBack(std::move(datagram));
  return true;
}

void DatagramSocket::refuseFront(int error, SendObserver& observer) {
  const Datagram& d = queue_.front();
  if (error == EMSGSIZE) {
    ++counters_.tooBig;
    observer.onTooBig(d);
  } else if (error == ENOBUFS || error == ENOMEM) {
    ++counters_.noMemory;
  } else {
    ++counters_.sendErrors;
    observer.onSendError(d, error);
  }
  queue_.popFront();
}

bool DatagramSocket::sendQueue(SendObserver& observer) {
  int pendingErrors = 0;  // ICMP answers to earlier datagrams that the host hands out instead of sending
  while (!queue_.empty()) {
    int sent = send(std::min(queue_.size(), kBatch));
    for (int i = 0; i < sent; ++i) {
      ++counters_.sentDatagrams;
      counters_.sentBytes += queue_.front().bytes.size();
      queue_.popFront();
    }
    if (sent >= 0) continue;
    if (sent == -EAGAIN) {
      ++counters_.blocked;
      return false;
    }
    if (sent == -ECONNREFUSED && ++pendingErrors < 8) continue;
    refuseFront(-sent, observer);
  }
  return true;
}

bool DatagramSocket::flush(SendObserver& observer) {
  blocked_ = !sendQueue(observer);
  watchWritable(blocked_);
  return !blocked_;
}

}  // namespace braid
