#include "host/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace braid {

namespace {
constexpr int kNotSealed =
    EBADMSG;  // the cipher failed: this says nothing about the route, and the core knows it already
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
  if (!noMemory && error != kNotSealed) observer.onSendError(refused, error);
}

// Seals (encrypts) those of the next datagrams that the core left unsealed for the driver. Returns
// how many of them may be sent; 0: the cipher failed. A datagram is never sealed twice: the first
// pass changes the bytes, and a second pass over them could restore the plaintext.
size_t DatagramSocket::sealSome(unsigned lane) {
  size_t most = std::min(leaving_.size() - next_, kBatch);
  for (size_t i = 0; i < most; ++i) {
    Datagram& d = nextAt(i);
    if (!d.unsealed || d.unsealed.good) continue;
    if (!d.unsealed.tried) d.unsealed.seal(d.bytes.span(), lane);
    if (!d.unsealed.good) return i;
  }
  return most;
}

// Runs on the thread that has leaving_ at the moment.
bool DatagramSocket::sendLeaving(unsigned lane) {
  // Counts ICMP errors for earlier datagrams, which the host reports instead of sending.
  int pendingErrors = 0;
  while (next_ < leaving_.size()) {
    size_t ready = sealSome(lane);
    int sent = ready > 0 ? send(ready) : -kNotSealed;
    if (sent >= 0) {
      next_ += static_cast<size_t>(sent);
      continue;
    }
    stuck_ = sent == -EAGAIN;
    if (stuck_) return true;
    if (sent == -ECONNREFUSED && ++pendingErrors < 8) continue;
    refused_.push_back({next_++, -sent});
  }
  return !refused_.empty();
}

// Counts and frees the datagrams that have left.
void DatagramSocket::settle(SendObserver& observer) {
  auto refusal = refused_.begin();
  for (size_t i = 0; i < next_; ++i) {
    const Datagram& d = leaving_.front();
    if (refusal != refused_.end() && refusal->place == i) {
      tell(d, refusal++->error, observer);
    } else {
      ++counters_.sentDatagrams;
      counters_.sentBytes += d.bytes.size();
    }
    leaving_.popFront();
  }
  next_ = 0;
  refused_.clear();
  blocked_ = std::exchange(stuck_, false);
  counters_.blocked += blocked_;
}

void DatagramSocket::send(SendObserver& observer, bool here) {
  blocked_ = false;
  while (!blocked_ && queued() > 0) {
    if (leaving_.empty()) std::swap(queue_, leaving_);
    observer_ = &observer;
    sending_ = !here && handOver(leaving_.size());
    if (sending_) break;
    sendLeaving(0);
    settle(observer);
  }
  watchWritable(blocked_);
}

void DatagramSocket::endSending(SendObserver& observer) {
  awaitSending();
  sending_ = false;
  settle(observer);
}

bool DatagramSocket::flush(SendObserver& observer) {
  if (sending_) {
    if (hasSent(queued() > 0)) {
      sending_ = false;
      settle(observer);
    } else if (full()) {
      endSending(observer);
    } else {
      return true;
    }
    watchWritable(blocked_);
    if (blocked_) return false;
  }
  send(observer, false);
  return !blocked_;
}

void DatagramSocket::finish(SendObserver& observer) {
  if (sending_) endSending(observer);
  if (!blocked_) send(observer, true);
}

void DatagramSocket::onSent() {
  sending_ = false;
  settle(*observer_);
  watchWritable(blocked_);
  if (!blocked_) send(*observer_, false);
}

}  // namespace braid
