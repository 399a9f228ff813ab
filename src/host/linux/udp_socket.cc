#include "host/linux/udp_socket.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/linux/sockaddr.h"
#include "host/system_error.h"

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
  std::array<mmsghdr, DatagramSocket::kBatch> headers;
  std::array<iovec, DatagramSocket::kBatch> vectors;
  std::array<SocketAddress, DatagramSocket::kBatch> addresses;
  std::array<Control, DatagramSocket::kBatch> controls;

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

// One recvmmsg call's worth of headers, on the stack as well.
struct ReceiveHeaders {
  std::array<mmsghdr, ReceiveBatch::kSize> headers;
  std::array<iovec, ReceiveBatch::kSize> vectors;
  std::array<SocketAddress, ReceiveBatch::kSize> addresses;
  std::array<Control, ReceiveBatch::kSize> controls;

  void set(size_t i, ByteSpan room) {
    vectors[i] = {room.data(), room.size()};
    headers[i] = {};
    msghdr& h = headers[i].msg_hdr;
    h.msg_name = &addresses[i];
    h.msg_namelen = sizeof addresses[i];
    h.msg_iov = &vectors[i];
    h.msg_iovlen = 1;
    h.msg_control = &controls[i];
    h.msg_controllen = sizeof controls[i];
  }
};

// Fills the local address, the ECN bits and the counter of what the socket's buffer could not hold.
void readControl(msghdr& header, Address& local, Ecn& ecn, uint64_t& overflowed) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    const uint8_t* data = CMSG_DATA(c);
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, data, sizeof info);
      local = fromInAddr(info.ipi_spec_dst);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      ecn = static_cast<Ecn>(*data & 3);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, data, sizeof info);
      local = fromIn6Addr(info.ipi6_addr);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int trafficClass;
      std::memcpy(&trafficClass, data, sizeof trafficClass);
      ecn = static_cast<Ecn>(trafficClass & 3);
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      uint32_t total;  // since the socket was made
      std::memcpy(&total, data, sizeof total);
      overflowed += static_cast<uint32_t>(total - static_cast<uint32_t>(overflowed));
    }
  }
}

UniqueFd openSocket(const SocketOptions& options) {
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
  return fd;
}

Endpoint localEnd(int fd) {
  SocketAddress bound;
  socklen_t length = sizeof bound;
  if (::getsockname(fd, &bound.any, &length) < 0) {
    throw SystemError(errno, std::string("UDP socket: no local name: ") + std::strerror(errno));
  }
  return fromSocketAddress(bound);
}

}  // namespace

UdpSocket::UdpSocket(SocketId id, const SocketOptions& options) : UdpSocket(id, openSocket(options)) {}
UdpSocket::UdpSocket(SocketId id, UniqueFd fd) : DatagramSocket(id, localEnd(fd.get())), fd_(std::move(fd)) {}

void UdpSocket::watch(Loop& loop, SocketCallbacks callbacks) {
  watcher_ = std::make_unique<IoWatcher>(loop, fd(), std::move(callbacks.onReadable),
                                         std::move(callbacks.onWritable));
}

void UdpSocket::watchWritable(bool on) {
  if (watcher_) watcher_->wantWrite(on);
}

int UdpSocket::send(size_t count) {
  SendBatch batch;
  for (size_t i = 0; i < count; ++i) batch.set(i, queuedAt(i));
  int sent;
  do sent = ::sendmmsg(fd(), batch.headers.data(), static_cast<unsigned>(count), 0);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

// Throws a datagram away for which there is no packet. False when none was waiting.
bool UdpSocket::dropOne() {
  uint8_t scratch[1];
  if (::recv(fd(), scratch, sizeof scratch, 0) < 0) return false;
  ++counters_.noBuffer;
  return true;
}

std::span<ReceivedDatagram> UdpSocket::receive(ReceiveBatch& batch, size_t limit, bool& more) {
  more = false;
  size_t want = batch.prepare(limit);
  if (want == 0) {
    if (limit > 0) more = dropOne();
    return {};
  }
  ReceiveHeaders in;
  for (size_t i = 0; i < want; ++i) in.set(i, batch.room(i));
  int got;
  do got = ::recvmmsg(fd(), in.headers.data(), static_cast<unsigned>(want), 0, nullptr);
  while (got < 0 && errno == EINTR);
  if (got < 0) {
    // A pending ICMP error is not about this socket's health; reading it clears it.
    more = errno != EAGAIN;
    if (errno != EAGAIN && errno != ECONNREFUSED) ++counters_.receiveErrors;
    return {};
  }
  more = static_cast<size_t>(got) == want;
  for (size_t i = 0; i < static_cast<size_t>(got); ++i) {
    msghdr& h = in.headers[i].msg_hdr;
    Address local;
    Ecn ecn = Ecn::kNotEct;
    readControl(h, local, ecn, counters_.overflowed);
    if (h.msg_flags & MSG_TRUNC) {
      ++counters_.truncated;
      continue;
    }
    size_t size = in.headers[i].msg_len;
    batch.take(i, size, {id(), local, fromSocketAddress(in.addresses[i])}, ecn);
    ++counters_.receivedDatagrams;
    counters_.receivedBytes += size;
  }
  return batch.received();
}

}  // namespace braid
