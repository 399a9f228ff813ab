#include "host/linux/linux_stream_host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/linux/nft_interception.h"
#include "host/linux/sockaddr.h"
#include "host/linux/tcp_socket.h"
#include "host/system_error.h"

namespace braid {

namespace {

constexpr uint64_t kListenerTag = UINT64_MAX;
// What waits to be accepted, of each family; the kernel takes net.core.somaxconn (4096) at most.
constexpr int kBacklog = 4096;
// Descriptors beside those that are open when streams begin: uplinks that come later, clients of the control socket, files
// that are read again. Ours: kMaxUplinks of eight sockets each, and as many more.
constexpr size_t kOtherDescriptors = 512;
constexpr size_t kFewDescriptors = 32;  // where there are not many at all
constexpr int kEvents = 256;            // told in one go

// The lowest number that is free: all below it are in use.
size_t descriptorsInUse() {
  UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return next ? static_cast<size_t>(next.get()) : 0;
}

// As many as the service manager allows; the soft limit is for programs that use select().
size_t raiseDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  size_t all = limit.rlim_cur;
  size_t others = descriptorsInUse() + (all > 4 * kOtherDescriptors ? kOtherDescriptors : kFewDescriptors);
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
      table_("braid-" + device,
             {"cannot take TCP connections over for streams", "nft_tproxy, nft_socket and nft_fib_inet"}),
      watcher_(loop, epoll_.get(), [this] { onReady(); }) {
  wantAccept(true);
}

// At the loopback addresses, which no packet from outside reaches by itself.
LinuxStreamHost::Listener LinuxStreamHost::listen(Address::Family family) {
  Listener out{openTransparent(family), 0};
  if (!out.fd && family == Address::Family::kV6 && errno == EAFNOSUPPORT)
    return out;  // a machine without IPv6
  if (!out.fd) fail("cannot open a transparent socket");
  SocketAddress address;
  socklen_t length =
      toSocketAddress({*Address::parse(family == Address::Family::kV4 ? "127.0.0.1" : "::1"), 0}, address);
  if (::bind(out.fd.get(), &address.any, length) != 0) {
    if (family == Address::Family::kV6 && errno == EADDRNOTAVAIL) return {};  // IPv6 is switched off
    fail("cannot bind a socket for TCP connections");
  }
  if (::listen(out.fd.get(), kBacklog) != 0 || ::getsockname(out.fd.get(), &address.any, &length) != 0)
    fail("cannot listen for TCP connections");
  out.port = fromSocketAddress(address).port;
  return out;
}

void LinuxStreamHost::intercept(const Interception& what, bool takeNew) {
  table_.replace([&](NftBatch& batch, const std::string& table) {
    putInterception(batch, table, what, takeNew, listeners_[0].port, listeners_[1].port);
  });
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
    event.events = EPOLLIN;  // told until all are accepted
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
    observer_.onReady(e.data.u64, {(e.events & (EPOLLIN | EPOLLRDHUP)) != 0 || hangUp,
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
      if (errno == EMFILE || errno == ENFILE) return turnAway(listener.fd.get(), error), std::nullopt;
      if (errno != EAGAIN) error = errno;
      continue;
    }
    auto socket = std::make_unique<TcpSocket>(std::move(fd));
    length = sizeof destination;
    if (::getsockname(socket->fd(), &destination.any, &length) != 0 || !watch(socket->fd(), tag, false)) {
      error = ECONNABORTED;
      return std::nullopt;
    }
    Endpoint to = fromSocketAddress(destination);
    // A process of this machine that connected to the listener itself is nobody's stream.
    if (to.port == listener.port &&
        (to.address == *Address::parse("127.0.0.1") || to.address == *Address::parse("::1"))) {
      error = ECONNABORTED;
      return std::nullopt;
    }
    return Accepted{std::move(socket), fromSocketAddress(source), to};
  }
  return std::nullopt;
}

// Without a descriptor a connection can be neither taken nor refused, and its client would wait: so one is kept for that.
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
    int on = 1;  // the client's address and port may serve towards several servers at once
    ::setsockopt(socket->fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t length = toSocketAddress(*source, address);
    if (::bind(socket->fd(), &address.any, length) != 0) {
      error = errno;
      return nullptr;
    }
  }
  socklen_t length = toSocketAddress(destination, address);
  if ((::connect(socket->fd(), &address.any, length) != 0 && errno != EINPROGRESS) ||
      !watch(socket->fd(), tag, false)) {
    error = errno;
    return nullptr;
  }
  error = 0;
  return socket;
}

}  // namespace braid
