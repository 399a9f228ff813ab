#include "gateway/udp_socket.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/sockaddr.h"

namespace braid {

namespace {

// Room for address, ECN bits and (receiving) the overflow counter.
constexpr size_t kControlBytes =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t));

struct alignas(cmsghdr) Control {
  uint8_t bytes[kControlBytes];
};

void setOption(int fd, int level, int option, int value, const char* what) {
  if (::setsockopt(fd, level, option, &value, sizeof value) < 0) {
    throw SystemError(errno, std::string("UDP socket: cannot set ") + what + ": " + std::strerror(errno));
  }
}

// The kernel doubles the value for its own overhead, and SO_*BUF without FORCE is cut silently.
void setBuffer(int fd, int forced, int plain, int bytes) {
  if (::setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) < 0) {
    ::setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

void setFamilyOptions(int fd, bool v4) {
  if (v4) {
    setOption(fd, IPPROTO_IP, IP_PKTINFO, 1, "IP_PKTINFO");
    setOption(fd, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
    setOption(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
  } else {
    setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
    setOption(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO");
    setOption(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
    setOption(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
  }
}

void bindToInterface(int fd, const std::string& interface) {
  if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) == 0)
    return;
  int error = errno;
  std::string what = "UDP socket: cannot bind to interface '" + interface + "': ";
  what += error == EPERM ? std::string("needs CAP_NET_RAW") : std::string(std::strerror(error));
  throw SystemError(error, what);
}

void bindToAddress(int fd, const Endpoint& local) {
  SocketAddress address;
  socklen_t length = toSocketAddress(local, address);
  if (::bind(fd, &address.any, length) == 0) return;
  int error = errno;
  std::string what = "UDP socket: cannot bind to " + local.toString() + ": " + std::strerror(error);
  if (error == EADDRINUSE) what += "; another program listens there";
  if (error == EADDRNOTAVAIL) what += "; no interface has this address";
  if (error == EACCES) what += "; ports below 1024 need CAP_NET_BIND_SERVICE";
  throw SystemError(error, what);
}

template <typename T>
void addControl(msghdr& header, cmsghdr*& at, int level, int type, const T& value) {
  at = at ? CMSG_NXTHDR(&header, at) : CMSG_FIRSTHDR(&header);
  at->cmsg_level = level;
  at->cmsg_type = type;
  at->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(at), &value, sizeof value);
}

size_t fillControl(msghdr& header, const Datagram& d) {
  cmsghdr* at = nullptr;
  size_t used = 0;
  int tos = static_cast<int>(d.ecn);
  bool v4 = d.route.remote.address.isV4();
  if (tos != 0) {
    addControl(header, at, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, tos);
    used += CMSG_SPACE(sizeof tos);
  }
  const Address& local = d.route.local;
  if (v4 && local.isV4()) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, local.bytes.data(), 4);
    addControl(header, at, IPPROTO_IP, IP_PKTINFO, info);
    used += CMSG_SPACE(sizeof info);
  } else if (!v4 && local.isV6()) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, local.bytes.data(), 16);
    addControl(header, at, IPPROTO_IPV6, IPV6_PKTINFO, info);
    used += CMSG_SPACE(sizeof info);
  }
  return used;
}

// One sendmmsg call's worth of headers; lives on the stack and is written only as far as it is used.
struct SendBatch {
  std::array<mmsghdr, UdpSocket::kBatch> headers;
  std::array<iovec, UdpSocket::kBatch> vectors;
  std::array<SocketAddress, UdpSocket::kBatch> addresses;
  std::array<Control, UdpSocket::kBatch> controls;

  void set(size_t i, Datagram& d) {
    vectors[i] = {d.bytes.data(), d.bytes.size()};
    headers[i] = {};
    msghdr& h = headers[i].msg_hdr;
    h.msg_name = &addresses[i];
    h.msg_namelen = toSocketAddress(d.route.remote, addresses[i]);
    h.msg_iov = &vectors[i];
    h.msg_iovlen = 1;
    std::memset(&controls[i], 0, sizeof controls[i]);
    h.msg_control = &controls[i];
    h.msg_controllen = sizeof controls[i];
    h.msg_controllen = fillControl(h, d);
    if (h.msg_controllen == 0) h.msg_control = nullptr;
  }
};

void readControl(msghdr& header, ReceivedDatagram& out, uint64_t& overflowed) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    const uint8_t* data = CMSG_DATA(c);
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, data, sizeof info);
      out.from.local = fromInAddr(info.ipi_spec_dst);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      out.ecn = static_cast<Ecn>(*data & 3);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, data, sizeof info);
      out.from.local = fromIn6Addr(info.ipi6_addr);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int trafficClass;
      std::memcpy(&trafficClass, data, sizeof trafficClass);
      out.ecn = static_cast<Ecn>(trafficClass & 3);
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      uint32_t total;  // since the socket was made
      std::memcpy(&total, data, sizeof total);
      overflowed += static_cast<uint32_t>(total - static_cast<uint32_t>(overflowed));
    }
  }
}

}  // namespace

UdpSocket::UdpSocket(SocketId id, const UdpSocketOptions& options) : id_(id), queue_(kQueueLimit) {
  bool v4 = options.local.isV4();
  if (!v4 && !options.local.isV6()) throw SystemError(EAFNOSUPPORT, "UDP socket: no address family given");
  UniqueFd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd) throw SystemError(errno, std::string("cannot make a UDP socket: ") + std::strerror(errno));
  setFamilyOptions(fd.get(), v4);
  setOption(fd.get(), SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
  setBuffer(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, options.bufferBytes);
  setBuffer(fd.get(), SO_SNDBUFFORCE, SO_SNDBUF, options.bufferBytes);
  if (!options.interface.empty()) bindToInterface(fd.get(), options.interface);
  bindToAddress(fd.get(), {options.local, options.port});

  SocketAddress bound;
  socklen_t length = sizeof bound;
  if (::getsockname(fd.get(), &bound.any, &length) < 0) {
    throw SystemError(errno, std::string("UDP socket: no local name: ") + std::strerror(errno));
  }
  local_ = fromSocketAddress(bound);
  fd_ = std::move(fd);
}

bool UdpSocket::enqueue(Datagram&& datagram) {
  if (full() || datagram.route.remote.address.family != family()) {
    ++counters_.queueDrops;
    datagram.bytes.reset();
    return false;
  }
  queuedAt(count_++) = std::move(datagram);
  return true;
}

void UdpSocket::popFront() {
  queue_[head_].bytes.reset();
  head_ = (head_ + 1) % kQueueLimit;
  --count_;
}

void UdpSocket::refuseFront(int error, SendObserver& observer) {
  const Datagram& d = queuedAt(0);
  if (error == EMSGSIZE) {
    ++counters_.tooBig;
    observer.onTooBig(d.route, d.bytes.size(), d.mtuProbe);
  } else if (error == ENOBUFS || error == ENOMEM) {
    ++counters_.noMemory;
  } else {
    ++counters_.sendErrors;
    observer.onSendError(d.route, error);
  }
  popFront();
}

bool UdpSocket::flush(SendObserver& observer) {
  SendBatch batch;
  int pendingErrors = 0;  // ICMP answers to earlier datagrams that sendmmsg hands out instead of sending
  while (count_ > 0) {
    size_t n = std::min(count_, kBatch);
    for (size_t i = 0; i < n; ++i) batch.set(i, queuedAt(i));
    int sent = ::sendmmsg(fd_.get(), batch.headers.data(), static_cast<unsigned>(n), 0);
    if (sent >= 0) {
      counters_.sentDatagrams += static_cast<uint64_t>(sent);
      for (int i = 0; i < sent; ++i) {
        counters_.sentBytes += queuedAt(0).bytes.size();
        popFront();
      }
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      ++counters_.blocked;
      return false;
    }
    if (errno == ECONNREFUSED && ++pendingErrors < 8) continue;
    refuseFront(errno, observer);
  }
  return true;
}

struct UdpReceiver::Slots {
  std::array<mmsghdr, kBatch> headers;
  std::array<iovec, kBatch> vectors;
  std::array<SocketAddress, kBatch> addresses;
  std::array<Control, kBatch> controls;
};

UdpReceiver::UdpReceiver(PacketPool& pool) : pool_(pool), slots_(std::make_unique<Slots>()) {}
UdpReceiver::~UdpReceiver() = default;

// Fills spare_ from the pool, without holes, and describes its first packets to the kernel.
size_t UdpReceiver::prepare(size_t limit) {
  size_t end = kBatch;
  for (size_t i = 0; i < end; ++i) {
    if (!spare_[i]) spare_[i] = pool_.allocate();
    while (!spare_[i] && end > i + 1) spare_[i] = std::move(spare_[--end]);
    if (!spare_[i]) end = i;
  }
  size_t n = std::min(limit, end);
  for (size_t i = 0; i < n; ++i) {
    slots_->vectors[i] = {spare_[i].data(), pool_.payload()};
    slots_->headers[i] = {};
    msghdr& h = slots_->headers[i].msg_hdr;
    h.msg_name = &slots_->addresses[i];
    h.msg_namelen = sizeof slots_->addresses[i];
    h.msg_iov = &slots_->vectors[i];
    h.msg_iovlen = 1;
    h.msg_control = &slots_->controls[i];
    h.msg_controllen = sizeof slots_->controls[i];
  }
  return n;
}

void UdpReceiver::dropOne(UdpSocket& socket, bool& more) {
  uint8_t scratch[1];
  ssize_t n = ::recv(socket.fd(), scratch, sizeof scratch, 0);
  more = n >= 0;
  if (n >= 0) ++socket.counters_.noBuffer;
}

std::span<ReceivedDatagram> UdpReceiver::receive(UdpSocket& socket, size_t limit, bool& more) {
  more = false;
  size_t want = prepare(std::min(limit, kBatch));
  if (want == 0) {
    if (limit > 0) dropOne(socket, more);
    return {};
  }
  int got;
  do got = ::recvmmsg(socket.fd(), slots_->headers.data(), static_cast<unsigned>(want), 0, nullptr);
  while (got < 0 && errno == EINTR);
  if (got < 0) {
    // A pending ICMP error is not about this socket's health; reading it clears it.
    more = errno != EAGAIN;
    if (errno != EAGAIN && errno != ECONNREFUSED) ++socket.counters_.receiveErrors;
    return {};
  }
  more = static_cast<size_t>(got) == want;
  size_t kept = 0;
  for (size_t i = 0; i < static_cast<size_t>(got); ++i) {
    msghdr& h = slots_->headers[i].msg_hdr;
    ReceivedDatagram& r = received_[kept];
    r.from = {socket.id(), {}, fromSocketAddress(slots_->addresses[i])};
    r.ecn = Ecn::kNotEct;
    readControl(h, r, socket.counters_.overflowed);
    if (h.msg_flags & MSG_TRUNC) {
      ++socket.counters_.truncated;
      continue;
    }
    r.bytes = std::move(spare_[i]);
    r.bytes.setSize(slots_->headers[i].msg_len);
    ++socket.counters_.receivedDatagrams;
    socket.counters_.receivedBytes += slots_->headers[i].msg_len;
    ++kept;
  }
  return {received_.data(), kept};
}

}  // namespace braid
