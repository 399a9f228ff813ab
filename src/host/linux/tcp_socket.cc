#include "host/linux/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace braid {

namespace {

// <linux/tcp.h> of Debian 12 does not have it; Linux 6.15 does.
constexpr int kTcpRtoMinUs = 45;
// The kernel's own least is 200 ms, for hosts that delay their ACKs. Linux delays them by 40 ms (TCP_DELACK_MIN), and one
// packet too many on a LAN costs less than what a loss there costs a user.
constexpr int kRtoMinUs = 40'000;

// A host that is gone without a word is noticed after about 4 minutes of silence; ours.
constexpr int kKeepIdle = 120, kKeepInterval = 15, kKeepCount = 8;  // seconds, seconds, probes

// Of what was written and cannot be sent yet the kernel holds no more: what waits for a slow reader waits where it is
// counted (StreamOptions::mostCredit). Ours: above what a LAN's 1 Gbit/s sends in a millisecond.
constexpr int kNotSentBytes = 128 << 10;

void set(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);  // a kernel without it does without
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
  for (size_t i = 0; i < count; ++i) room[i] = {const_cast<uint8_t*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = room.data();
  message.msg_iovlen = count;
  return message;
}

}  // namespace

UniqueFd openTransparent(Address::Family family) {
  bool v4 = family == Address::Family::kV4;
  UniqueFd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
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
  // Closed without a word, by this process or, after its death, by the kernel: a reset.
  linger reset{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

int TcpSocket::connectError() {
  if (int error = takeError()) return error;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return errno;
  return info.tcpi_state == TCP_SYN_SENT ? EINPROGRESS : 0;
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

}  // namespace braid
