#include "host/linux/linux_stream_host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/linux/bridge_filter.h"
#include "host/linux/nft_rules.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "inet/inner_packet.h"

namespace braid {

namespace {

// TCP_RTO_MIN_US exists from Linux 6.15 on, but not in the headers of Debian 12.
constexpr int kTcpRtoMinUs = 45;
// The kernel's default minimum is 200 ms, because hosts delay their ACKs. Linux delays them by 40
// ms (TCP_DELACK_MIN). A needless retransmission on a LAN costs less than the long wait after a
// loss there.
constexpr int kRtoMinUs = 40'000;

// A host that disappears is noticed after about 4 minutes of silence (120 s + 8 * 15 s).
constexpr int kKeepIdle = 120, kKeepInterval = 15, kKeepCount = 8;  // seconds, seconds, probes

// The kernel buffers at most this much data that cannot be sent yet. Further data for a slow reader
// waits in the gateway, where it is counted (StreamOptions::mostCredit). Chosen: more than a LAN
// sends at 1 Gbit/s in a millisecond.
constexpr int kNotSentBytes = 128 << 10;

constexpr const char* kBridgeFilter4 = "br_netfilter (net.bridge.bridge-nf-call-iptables)";
constexpr const char* kBridgeFilter6 = "br_netfilter (net.bridge.bridge-nf-call-ip6tables)";

void set(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);  // optional: a kernel may lack the option
}

StreamSocket::Moved outcome(ssize_t n) {
  using Why = StreamSocket::Moved::Why;
  if (n >= 0) return {static_cast<size_t>(n), Why::kDone, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {0, Why::kBlocked, 0};
  return {0, Why::kFailed, errno};
}

template <typename Piece>
msghdr vectorOf(std::span<const Piece> pieces, std::array<iovec, kStreamPieces>& room) {
  size_t count = std::min(pieces.size(), room.size());
  for (size_t i = 0; i < count; ++i)
    room[i] = {const_cast<uint8_t*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = room.data();
  message.msg_iovlen = count;
  return message;
}

}  // namespace

UniqueFd openTransparent(Address::Family family) {
  bool v4 = family == Address::Family::kV4;
  UniqueFd fd(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return fd;
  int on = 1;
  int done = v4 ? ::setsockopt(fd.get(), SOL_IP, IP_TRANSPARENT, &on, sizeof on)
                : ::setsockopt(fd.get(), SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof on);
  if (!v4) set(fd.get(), SOL_IPV6, IPV6_V6ONLY, 1);
  if (done != 0) return UniqueFd();
  return fd;
}

TcpSocket::TcpSocket(UniqueFd fd) : fd_(std::move(fd)) {
  set(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval);
  set(fd_.get(), IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set(fd_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kNotSentBytes);
  set(fd_.get(), IPPROTO_TCP, kTcpRtoMinUs, kRtoMinUs);
  // If the descriptor is closed without close(), by this process or by the kernel after its death,
  // the other end gets a reset.
  linger reset{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

// The state is read first: that waits until the kernel is done with an ICMP error, of which it
// tells before it has noted it.
int TcpSocket::connectError() {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return errno;
  if (int error = takeError()) return error;
  if (info.tcpi_state == TCP_SYN_SENT) return EINPROGRESS;
  if (info.tcpi_state == TCP_CLOSE) return ECONNABORTED;
  set(fd_.get(), SOL_IPV6, IPV6_RECVERR, 0);
  return 0;
}

int TcpSocket::takeError() {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

StreamSocket::Moved TcpSocket::read(std::span<const ByteSpan> into) {
  std::array<iovec, kStreamPieces> room;
  msghdr message = vectorOf(into, room);
  ssize_t n;
  do n = ::recvmsg(fd_.get(), &message, 0);
  while (n < 0 && errno == EINTR);
  Moved moved = outcome(n);
  if (n == 0) moved.why = Moved::Why::kEnd;
  return moved;
}

StreamSocket::Moved TcpSocket::write(std::span<const ByteView> from) {
  std::array<iovec, kStreamPieces> room;
  msghdr message = vectorOf(from, room);
  ssize_t n;
  do n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return outcome(n);
}

void TcpSocket::shutdownWrite() {
  ::shutdown(fd_.get(), SHUT_WR);
}

void TcpSocket::close() {
  linger none{0, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  fd_ = UniqueFd();
}

namespace {

constexpr uint64_t kListenerTag = UINT64_MAX;
// The most connections that wait to be accepted, for each family. The kernel limits it to
// net.core.somaxconn (4096).
constexpr int kBacklog = 4096;
// Descriptors reserved for other uses than streams, in addition to those open when streams begin:
// uplinks that are added later, clients of the control socket, files that are read again. Chosen:
// kMaxUplinks of eight sockets each, and the same number again.
constexpr size_t kOtherDescriptors = 512;
constexpr size_t kFewDescriptors = 32;  // reserved instead when the limit is low
constexpr int kEvents = 256;            // events per epoll_wait()

// The number of descriptors in use, taken from the lowest free number: all below it are in use.
size_t descriptorsInUse() {
  UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return next ? static_cast<size_t>(next.get()) : 0;
}

// Raises the limit of descriptors to what the service manager allows, and returns how many are left
// for streams. The soft limit exists only for programs that use select().
size_t raiseDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  size_t all = limit.rlim_cur;
  size_t others =
      descriptorsInUse() + (all > 4 * kOtherDescriptors ? kOtherDescriptors : kFewDescriptors);
  return all > others ? all - others : 0;
}

UniqueFd makeSpare() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

[[noreturn]] void fail(const std::string& what) {
  int error = errno;
  bool denied = error == EPERM || error == EACCES;
  throw SystemError(error, what + ": " + (denied ? kNetAdminRemedy : std::strerror(error)));
}

UniqueFd makeEpoll() {
  UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) fail("cannot watch TCP connections");
  return fd;
}

}  // namespace

LinuxStreamHost::LinuxStreamHost(Loop& loop, const std::string& device, StreamObserver& observer)
    : observer_(observer),
      most_(raiseDescriptors()),
      epoll_(makeEpoll()),
      spare_(makeSpare()),
      listeners_{listen(Address::Family::kV4), listen(Address::Family::kV6)},
      table_("braid-" + device, {"cannot take TCP connections over for streams",
                                 "nft_tproxy, nft_socket and nft_fib_inet"}),
      watcher_(loop, epoll_.get(), [this] { onReady(); }) {
  wantAccept(true);
}

// Listens on the loopback address, which no packet from outside can reach without TPROXY.
LinuxStreamHost::Listener LinuxStreamHost::listen(Address::Family family) {
  Listener out{openTransparent(family), 0};
  if (!out.fd && family == Address::Family::kV6 && errno == EAFNOSUPPORT)
    return out;  // a machine without IPv6
  if (!out.fd) fail("cannot open a transparent socket");
  SocketAddress address;
  socklen_t length = toSocketAddress(
      {*Address::parse(family == Address::Family::kV4 ? "127.0.0.1" : "::1"), 0}, address);
  if (::bind(out.fd.get(), &address.any, length) != 0) {
    if (family == Address::Family::kV6 && errno == EADDRNOTAVAIL)
      return {};  // IPv6 is switched off
    fail("cannot bind a socket for TCP connections");
  }
  if (::listen(out.fd.get(), kBacklog) != 0 ||
      ::getsockname(out.fd.get(), &address.any, &length) != 0)
    fail("cannot listen for TCP connections");
  out.port = fromSocketAddress(address).port;
  return out;
}

void LinuxStreamHost::intercept(const Interception& what, bool takeNew) {
  for (const UniqueFd& fd : raw_)
    if (fd) set(fd.get(), SOL_SOCKET, SO_MARK, static_cast<int>(what.mark));
  table_.replace([&](NftBatch& batch, const std::string& table) {
    putInterception(batch, table, what, takeNew, listeners_[0].port, listeners_[1].port);
  });
}

namespace {

// Whether the loopback interface carries IPv6. It may be switched off there alone, and the kernel
// then drops what is sent by that interface.
bool hasLoopbackV6() {
  UniqueFd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress address;
  socklen_t length = toSocketAddress({*Address::parse("::1"), 0}, address);
  return fd && ::bind(fd.get(), &address.any, length) == 0;
}

}  // namespace

// A packet that such a socket sends with the mark is routed to the loopback interface, so that
// neither reverse path filters nor rules for other interfaces see it.
bool LinuxStreamHost::canGiveBack() {
  for (const bool v6 : {false, true}) {
    if (!listeners_[v6].fd) continue;
    if (!raw_[v6])
      raw_[v6] = UniqueFd(
          ::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW));
    if (!raw_[v6]) return false;
    givesBack_[v6] = !v6 || hasLoopbackV6();
  }
  return true;
}

bool LinuxStreamHost::wasLetThrough(const Endpoint& source, const Endpoint& destination) {
  const bool v6 = destination.address.isV6();
  return givesBack_[v6] && table_.hasElement(passedSet(v6), passedKey(source, destination));
}

// When the system has no memory for the packet, the client repeats it.
void LinuxStreamHost::giveBack(ByteView syn) {
  std::optional<InnerPacket> ip = parseInnerPacket(syn);
  if (!ip) return;
  SocketAddress to;
  socklen_t length = toSocketAddress({ip->dst, 0}, to);
  ::sendto(raw_[ip->isV6()].get(), syn.data(), ip->size, 0, &to.any, length);
}

namespace {

// Chosen: a filter that others change all the time, as on a host with many containers, costs at
// most this part of a core.
constexpr int kFilterShare = 50;
constexpr size_t kMostTriedPorts = 16;

NftPacket packetOf(const Interception& what, const StreamApproach& approach, uint16_t port) {
  NftPacket out;
  out.hook = NftPacket::Hook::kInput;
  out.family = approach.source.family;
  out.protocol = IPPROTO_TCP;
  out.port = port;
  out.in = approach.interface;
  out.inIndex = approach.index;
  out.source = approach.source;
  out.isForeign = true;
  out.mark = what.mark;
  return out;
}

}  // namespace

bool LinuxStreamHost::readFilter() {
  Time begin = monotonicNow();
  if (begin < readAgain_) return false;
  uint32_t generation = NftFirewall::generation();
  if (filter_ && generation == filterGeneration_) return false;
  filter_ = std::make_unique<NftFirewall>();
  filterGeneration_ = generation;
  Time end = monotonicNow();
  readAgain_ = end + (end - begin) * kFilterShare;
  return true;
}

std::optional<std::vector<StreamBarrier>> LinuxStreamHost::barriers(
    const Interception& what, const std::vector<StreamApproach>& approaches, bool again) {
  std::vector<StreamBarrier> out;
  for (const StreamApproach& approach : approaches) {
    bool v6 = approach.source.isV6();
    if (isFilteredBridge(approach.interface, v6))
      out.push_back({approach.interface, v6, v6 ? kBridgeFilter6 : kBridgeFilter4});
  }
  bool isNew = readFilter();
  isNew |= std::exchange(atBridges_, out) != out;
  if (!isNew && !again) return std::nullopt;
  if (!filter_) return out;
  for (const StreamApproach& approach : approaches) {
    std::string by;
    for (size_t i = 0; i < what.match.size() && i < kMostTriedPorts && by.empty(); ++i) {
      std::vector<NftDrop> drops =
          filter_->drops(packetOf(what, approach, what.match[i].firstPort));
      if (!drops.empty()) by = drops.front().toString();
    }
    if (!by.empty()) out.push_back({approach.interface, approach.source.isV6(), by});
  }
  return out;
}

bool LinuxStreamHost::watch(int fd, uint64_t tag, bool again) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll_.get(), again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

void LinuxStreamHost::wantAccept(bool on) {
  for (const Listener& listener : listeners_) {
    if (!listener.fd) continue;
    epoll_event event{};
    event.events = EPOLLIN;  // level-triggered: reported until all are accepted
    event.data.u64 = kListenerTag;
    ::epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener.fd.get(), &event);
  }
}

void LinuxStreamHost::onReady() {
  std::array<epoll_event, kEvents> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), kEvents, 0);
  bool acceptable = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& e = events[static_cast<size_t>(i)];
    if (e.data.u64 == kListenerTag) {
      acceptable = true;
      continue;
    }
    bool hangUp = e.events & EPOLLHUP;
    observer_.onReady(e.data.u64,
                      {(e.events & (EPOLLIN | EPOLLRDHUP)) != 0 || hangUp,
                       (e.events & EPOLLOUT) != 0 || hangUp, (e.events & EPOLLERR) != 0});
  }
  if (acceptable) observer_.onAcceptable();
}

std::optional<StreamHost::Accepted> LinuxStreamHost::accept(uint64_t tag, int& error) {
  error = EAGAIN;
  for (const Listener& listener : listeners_) {
    if (!listener.fd) continue;
    SocketAddress source, destination;
    socklen_t length = sizeof source;
    UniqueFd fd(::accept4(listener.fd.get(), &source.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE)
        return turnAway(listener.fd.get(), error), std::nullopt;
      if (errno != EAGAIN) error = errno;
      continue;
    }
    auto socket = std::make_unique<TcpSocket>(std::move(fd));
    length = sizeof destination;
    if (::getsockname(socket->fd(), &destination.any, &length) != 0 ||
        !watch(socket->fd(), tag, false)) {
      error = ECONNABORTED;
      return std::nullopt;
    }
    Endpoint to = fromSocketAddress(destination);
    // A local process that connected to the listener's own address is not an intercepted
    // connection.
    if (to.port == listener.port &&
        (to.address == *Address::parse("127.0.0.1") || to.address == *Address::parse("::1"))) {
      error = ECONNABORTED;
      return std::nullopt;
    }
    return Accepted{std::move(socket), fromSocketAddress(source), to};
  }
  return std::nullopt;
}

// Resets a waiting connection when no descriptor is free. Without a descriptor a connection can be
// neither accepted nor refused, and its client would wait; so one descriptor is kept in reserve for
// this.
void LinuxStreamHost::turnAway(int listener, int& error) {
  spare_ = UniqueFd();
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  error = fd ? EMFILE : ENOBUFS;
  if (fd) TcpSocket reset(std::move(fd));
  spare_ = makeSpare();
}

void LinuxStreamHost::retag(StreamSocket& socket, uint64_t tag) {
  watch(static_cast<TcpSocket&>(socket).fd(), tag, true);
}

std::unique_ptr<StreamSocket> LinuxStreamHost::connect(const std::optional<Endpoint>& source,
                                                       const Endpoint& destination, uint64_t tag,
                                                       int& error) {
  UniqueFd fd = openTransparent(destination.address.family);
  if (!fd) {
    error = errno;
    return nullptr;
  }
  auto socket = std::make_unique<TcpSocket>(std::move(fd));
  SocketAddress address;
  if (source) {
    int on = 1;  // the client may use one address and port for connections to several servers
    ::setsockopt(socket->fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t length = toSocketAddress(*source, address);
    if (::bind(socket->fd(), &address.any, length) != 0) {
      error = errno;
      return nullptr;
    }
  }
  socklen_t length = toSocketAddress(destination, address);
  // An ICMPv6 error may arrive before connect() returns, when the server is a neighbor. The kernel
  // then reports it only to sockets with this option. For IPv4 it needs none.
  if (destination.address.isV6()) set(socket->fd(), SOL_IPV6, IPV6_RECVERR, 1);
  if ((::connect(socket->fd(), &address.any, length) != 0 && errno != EINPROGRESS) ||
      !watch(socket->fd(), tag, false)) {
    error = errno;
    return nullptr;
  }
  error = 0;
  return socket;
}

}  // namespace braid
