#include "host/fake/fake_datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace braid {

namespace {

constexpr uint16_t kFirstPort = 40000;  // of sockets that let the host choose

Endpoint localEnd(SocketId id, const SocketOptions& options) {
  return {options.local, options.port ? options.port : static_cast<uint16_t>(kFirstPort + id)};
}

}  // namespace

FakeDatagramSocket::FakeDatagramSocket(SocketId id, const SocketOptions& options, SocketCallbacks callbacks,
                                       OnSent onSent, std::function<void()> onClosed)
    : DatagramSocket(id, localEnd(id, options)),
      options_(options),
      callbacks_(std::move(callbacks)),
      onSent_(std::move(onSent)),
      onClosed_(std::move(onClosed)) {}

void FakeDatagramSocket::setRoom(size_t datagrams) {
  room_ = datagrams;
  if (watched_ && room_ > 0) callbacks_.onWritable();
}

void FakeDatagramSocket::put(const FakeDatagram& datagram) {
  in_.push_back(datagram);
  callbacks_.onReadable();
}

int FakeDatagramSocket::refusal(const Datagram& datagram) const {
  if (error_) return error_;
  if (room_ == 0) return EAGAIN;
  return datagram.bytes.size() + outerHeaders(datagram.route) > mtu_ ? EMSGSIZE : 0;
}

int FakeDatagramSocket::send(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Datagram& d = nextAt(i);
    if (int error = refusal(d)) return i == 0 ? -error : static_cast<int>(i);
    if (room_ != SIZE_MAX) --room_;
    Endpoint from{d.route.local.bits() ? d.route.local : local().address, local().port};
    onSent_({from, d.route.remote, d.ecn, {d.bytes.view().begin(), d.bytes.view().end()}});
  }
  return static_cast<int>(count);
}

std::span<ReceivedDatagram> FakeDatagramSocket::receive(ReceiveBatch& batch, size_t limit, bool& more) {
  size_t ready = batch.prepare(limit);
  for (size_t i = 0; i < ready && !in_.empty(); ++i) {
    const FakeDatagram& d = in_.front();
    ByteSpan room = batch.room(i);
    if (d.bytes.size() <= room.size()) {
      std::memcpy(room.data(), d.bytes.data(), d.bytes.size());
      batch.take(i, d.bytes.size(), {id(), d.to.address, d.from}, d.ecn);
      ++counters_.receivedDatagrams;
      counters_.receivedBytes += d.bytes.size();
    } else {
      ++counters_.truncated;
    }
    in_.pop_front();
  }
  more = ready > 0 && !in_.empty();
  return batch.received();
}

}  // namespace braid
