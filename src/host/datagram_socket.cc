#include "host/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace braid {

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
