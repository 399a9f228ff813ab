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
#include "host/system.h"

namespace braid {

namespace {

// Room for control messages: address, ECN bits, segment size and, when receiving, the overflow
// counter.
constexpr size_t kControlBytes =
    CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t));
// The most datagrams and bytes that the kernel accepts in one message with UDP_SEGMENT
// (UDP_MAX_SEGMENTS, and UDP's length field).
constexpr size_t kMostSegments = 64;
constexpr size_t kMostBytes = 65000;
// Messages per read when each may hold several datagrams: as much data as a batch of single
// datagrams, or a few times that.
constexpr size_t kMergedMessages = 8;

struct alignas(cmsghdr) Control {
  uint8_t bytes[kControlBytes];
};

void setOption(int fd, int level, int option, int value, const char* what) {
  if (::setsockopt(fd, level, option, &value, sizeof value) < 0) {
    throw SystemError(errno,
                      std::string("UDP socket: cannot set ") + what + ": " + std::strerror(errno));
  }
}

// Sets a buffer size. The kernel doubles the value for its own overhead. SO_*BUF without FORCE
// silently limits it.
void setBuffer(int fd, int forced, int plain, int bytes) {
  if (::setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) < 0) {
    ::setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

// Requests the counter of receive buffer overflows. Where the option is not known, as in an
// emulator, overflows are not counted.
void countOverflows(int fd) {
  int on = 1;
  (void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
}

// Without the permission to mark packets there is none to make the rules that look at marks.
void markPackets(int fd, uint32_t mark) {
  (void)setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark);
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

// IPV6_FREEBIND: Linux 4.15. Where it is not known, bindToAddress() fails.
void permitAbsentAddress(int fd, bool v4) {
  int on = 1;
  (void)setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &on,
                   sizeof on);
}

void bindToAddress(int fd, const Endpoint& local) {
  SocketAddress address;
  socklen_t length = toSocketAddress(local, address);
  if (::bind(fd, &address.any, length) == 0) return;
  int error = errno;
  std::string what = "UDP socket: cannot bind to " + local.toString() + ": " + std::strerror(error);
  if (error == EADDRINUSE)
    what += "; another program listens there: 'ss -ulnp' names it; stop it, or use another port";
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

// Writes the control messages and returns their size. `segment`: bytes of each datagram in the
// message except the last; 0: the message is a single datagram.
size_t fillControl(msghdr& header, const Datagram& d, uint16_t segment) {
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
  if (segment > 0) {
    addControl(header, at, IPPROTO_UDP, UDP_SEGMENT, segment);
    used += CMSG_SPACE(sizeof segment);
  }
  return used;
}

// The headers for one sendmmsg() call. Lives on the stack and is written only as far as it is used.
struct SendBatch {
  std::array<mmsghdr, DatagramSocket::kBatch> headers;
  // One for each datagram; those of a message are adjacent.
  std::array<iovec, DatagramSocket::kBatch> vectors;
  std::array<SocketAddress, DatagramSocket::kBatch> addresses;
  std::array<Control, DatagramSocket::kBatch> controls;
  std::array<uint8_t, DatagramSocket::kBatch> datagrams;  // datagrams in each message
  size_t messages = 0;

  // Adds a message of `count` datagrams. `d` is the first of them; `at` points to their vectors.
  void add(Datagram& d, iovec* at, size_t count) {
    size_t i = messages++;
    datagrams[i] = static_cast<uint8_t>(count);
    headers[i] = {};
    msghdr& h = headers[i].msg_hdr;
    h.msg_name = &addresses[i];
    h.msg_namelen = toSocketAddress(d.route.remote, addresses[i]);
    h.msg_iov = at;
    h.msg_iovlen = count;
    std::memset(&controls[i], 0, sizeof controls[i]);
    h.msg_control = &controls[i];
    h.msg_controllen = sizeof controls[i];
    h.msg_controllen = fillControl(h, d, count > 1 ? static_cast<uint16_t>(d.bytes.size()) : 0);
    if (h.msg_controllen == 0) h.msg_control = nullptr;
  }
  // The number of datagrams in the first `sent` messages.
  int datagramsOf(int sent) const {
    int sum = 0;
    for (int i = 0; i < sent; ++i) sum += datagrams[static_cast<size_t>(i)];
    return sum;
  }
};

// The headers for one recvmmsg() call, also on the stack.
struct ReceiveHeaders {
  std::array<mmsghdr, ReceiveBatch::kSize> headers;
  std::array<std::array<iovec, 2>, ReceiveBatch::kSize> vectors;
  std::array<SocketAddress, ReceiveBatch::kSize> addresses;
  std::array<Control, ReceiveBatch::kSize> controls;

  // `spill`: for bytes that do not fit `room`; empty: they are cut off.
  void set(size_t i, ByteSpan room, ByteSpan spill) {
    vectors[i] = {iovec{room.data(), room.size()}, iovec{spill.data(), spill.size()}};
    headers[i] = {};
    msghdr& h = headers[i].msg_hdr;
    h.msg_name = &addresses[i];
    h.msg_namelen = sizeof addresses[i];
    h.msg_iov = vectors[i].data();
    h.msg_iovlen = spill.empty() ? 1 : 2;
    h.msg_control = &controls[i];
    h.msg_controllen = sizeof controls[i];
  }
};

// Reads the control messages: local address, ECN bits, the counter of receive buffer overflows, and
// the size of each datagram in a message of several.
void readControl(msghdr& header, Address& local, Ecn& ecn, uint32_t& overflowed, size_t& each) {
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
      std::memcpy(&overflowed, data, sizeof overflowed);  // counted since the socket was created
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int segment;
      std::memcpy(&segment, data, sizeof segment);
      each = segment > 0 ? static_cast<size_t>(segment) : 0;
    }
  }
}

UniqueFd openSocket(const SocketOptions& options) {
  bool v4 = options.local.isV4();
  if (!v4 && !options.local.isV6())
    throw SystemError(EAFNOSUPPORT, "UDP socket: no address family given");
  UniqueFd fd(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd) {
    int error = errno;
    std::string what = std::string("cannot make a UDP socket: ") + std::strerror(error);
    if (error == EAFNOSUPPORT) {
      what += v4 ? "; this machine has no IPv4" : "; this machine has no IPv6";
      what += ", or keeps it from this program";  // systemd's RestrictAddressFamilies=
    }
    throw SystemError(error, what);
  }
  setFamilyOptions(fd.get(), v4);
  countOverflows(fd.get());
  setBuffer(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, options.bufferBytes);
  setBuffer(fd.get(), SO_SNDBUFFORCE, SO_SNDBUF, options.bufferBytes);
  if (options.mark) markPackets(fd.get(), options.mark);
  if (options.mayBeAbsent) permitAbsentAddress(fd.get(), v4);
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

UdpSocket::UdpSocket(SocketId id, const SocketOptions& options)
    : UdpSocket(id, openSocket(options)) {
  if (!options.offloads) return;
  int on = 1, size = 0;
  socklen_t length = sizeof size;
  gathers_ = ::getsockopt(fd(), IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0;  // Linux 4.18
  merges_ = ::setsockopt(fd(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;       // Linux 5.0
}
UdpSocket::UdpSocket(SocketId id, UniqueFd fd)
    : DatagramSocket(id, localEnd(fd.get())), fd_(std::move(fd)) {}

void UdpSocket::watch(Loop& loop, SocketCallbacks callbacks) {
  watcher_ = std::make_unique<IoWatcher>(loop, fd(), std::move(callbacks.onReadable),
                                         std::move(callbacks.onWritable));
}

void UdpSocket::watchWritable(bool on) {
  if (watcher_) watcher_->wantWrite(on);
}

// How many datagrams from the i-th to before `end` may be sent as one message. They must have the
// same route and ECN bits, and the same size except for the last, which may be shorter.
size_t UdpSocket::runAt(size_t i, size_t end) {
  const Datagram& first = nextAt(i);
  size_t size = first.bytes.size(), bytes = size, n = 1;
  if (!gathers_ || size == 0) return 1;
  for (bool whole = true; whole && n < kMostSegments && i + n < end; ++n) {
    const Datagram& d = nextAt(i + n);
    whole = d.bytes.size() == size;
    bytes += d.bytes.size();
    if (d.bytes.empty() || d.bytes.size() > size || bytes > kMostBytes) break;
    if (d.ecn != first.ecn || !(d.route == first.route)) break;
  }
  return n;
}

int UdpSocket::send(size_t count) {
  SendBatch batch;
  for (size_t i = 0; i < count; ++i)
    batch.vectors[i] = {nextAt(i).bytes.data(), nextAt(i).bytes.size()};
  for (size_t i = 0; i < count; i += batch.datagrams[batch.messages - 1])
    batch.add(nextAt(i), &batch.vectors[i], runAt(i, count));
  int sent;
  do sent = ::sendmmsg(fd(), batch.headers.data(), static_cast<unsigned>(batch.messages), 0);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) {
    if (batch.datagrams[0] > 1) refusals_ = 0;
    return batch.datagramsOf(sent);
  }
  if (batch.datagrams[0] == 1 || errno == EAGAIN) return -errno;
  // The kernel refused a message of several datagrams, so its first datagram is tried alone.
  int error = errno;
  int alone = sendOne();
  if (alone > 0) onRunRefused(error);
  return alone;
}

// EIO: the network card cannot compute checksums, so the kernel does not segment for it. Other
// errors may be those of earlier datagrams, which the kernel reports instead of sending.
void UdpSocket::onRunRefused(int error) {
  bool isOfRun = error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP;
  if (!isOfRun) return;
  ++counters_.refusedRuns;
  if (error == EIO || ++refusals_ >= kMostRefusals) gathers_ = false;
}

// Messages that the kernel has merged already are still read as such.
void UdpSocket::setMerging(bool on) {
  int value = on;
  ::setsockopt(fd(), IPPROTO_UDP, UDP_GRO, &value, sizeof value);
}

int UdpSocket::sendOne() {
  SendBatch batch;
  batch.vectors[0] = {nextAt(0).bytes.data(), nextAt(0).bytes.size()};
  batch.add(nextAt(0), &batch.vectors[0], 1);
  ssize_t sent;
  do sent = ::sendmsg(fd(), &batch.headers[0].msg_hdr, 0);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : 1;
}

// Drops a datagram for which there is no packet buffer. False when none was waiting.
bool UdpSocket::dropOne() {
  uint8_t scratch[1];
  if (::recv(fd(), scratch, sizeof scratch, 0) < 0) return false;
  ++counters_.noBuffer;
  return true;
}

std::span<ReceivedDatagram> UdpSocket::receive(ReceiveBatch& batch, size_t limit, bool& more) {
  more = false;
  if (merges_) limit = std::min(limit, kMergedMessages);
  size_t want = batch.prepare(limit);
  if (want == 0) {
    if (limit > 0) more = dropOne();
    return {};
  }
  more = fill(batch, want);
  return batch.received();
}

// Receives up to `want` messages into the batch. False: the socket has no more.
bool UdpSocket::fill(ReceiveBatch& batch, size_t want) {
  ReceiveHeaders in;
  for (size_t i = 0; i < want; ++i) in.set(i, batch.room(i), merges_ ? batch.spill(i) : ByteSpan{});
  int got;
  do got = ::recvmmsg(fd(), in.headers.data(), static_cast<unsigned>(want), 0, nullptr);
  while (got < 0 && errno == EINTR);
  if (got < 0) {
    // A pending ICMP error does not mean that this socket is broken; reading it clears it.
    if (errno != EAGAIN && errno != ECONNREFUSED) ++counters_.receiveErrors;
    return errno != EAGAIN;
  }
  uint32_t overflowed = overflowed_;
  for (size_t i = 0; i < static_cast<size_t>(got); ++i) {
    msghdr& h = in.headers[i].msg_hdr;
    Address local;
    Ecn ecn = Ecn::kNotEct;
    size_t size = in.headers[i].msg_len, each = size;
    readControl(h, local, ecn, overflowed, each);
    if (h.msg_flags & MSG_TRUNC || each > batch.room(i).size()) {
      ++counters_.truncated;
      continue;
    }
    Route from{id(), local, fromSocketAddress(in.addresses[i])};
    counters_.receivedBytes += size;
    if (each == 0 || each >= size) {
      batch.take(i, size, from, ecn);
      ++counters_.receivedDatagrams;
    } else {
      counters_.noBuffer += batch.takeSeveral(i, size, each, from, ecn);
      counters_.receivedDatagrams += (size + each - 1) / each;
    }
  }
  counters_.overflowed += overflowed - std::exchange(overflowed_, overflowed);
  return static_cast<size_t>(got) == want;
}

}  // namespace braid
