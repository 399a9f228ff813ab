#include "tests/fuzz/fake_netlink.h"

#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fuzz/check.h"

/// libmnl's type, which is not declared elsewhere. Datagrams that are written to `kernel` are read
/// from `own`.
struct mnl_socket {
  int own = -1, kernel = -1;
};

namespace braid::fuzz {
namespace {

constexpr uint32_t kPort = 4711;  // of every socket

FakeNetlink* present = nullptr;
std::map<int, int> kernelEnds;  // of open sockets, by their descriptors

void send(int fd, ByteView bytes) {
  require(::send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "the queue of the socket is full");
}

// Makes the complete messages of a datagram fit a request.
void fit(ByteSpan bytes, uint32_t sequence) {
  while (bytes.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.nlmsg_seq = sequence;
    header.nlmsg_pid = kPort;
    std::memcpy(bytes.data(), &header, sizeof header);
    if (header.nlmsg_len < sizeof header) return;
    bytes = bytes.subspan(std::min<size_t>(bytes.size(), MNL_ALIGN(size_t{header.nlmsg_len})));
  }
}

// The end of a dump, or the acknowledgment of another request.
void sendEnd(int fd, const nlmsghdr& request, int error) {
  struct {
    nlmsghdr header{};
    nlmsgerr body{};
  } end;
  const bool isDump = (request.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP && error == 0;
  end.header = {sizeof end, static_cast<uint16_t>(isDump ? NLMSG_DONE : NLMSG_ERROR), 0,
                request.nlmsg_seq, kPort};
  end.body.error = -error;
  send(fd, {reinterpret_cast<const uint8_t*>(&end), sizeof end});
}

// The header of the last message: a request may be a batch, whose end is not answered.
nlmsghdr lastOf(ByteView request) {
  nlmsghdr header{}, last{};
  while (request.size() >= sizeof header) {
    std::memcpy(&header, request.data(), sizeof header);
    require(header.nlmsg_len >= sizeof header, "a request without a length");
    if (header.nlmsg_type != NFNL_MSG_BATCH_END) last = header;
    request =
        request.subspan(std::min<size_t>(request.size(), MNL_ALIGN(size_t{header.nlmsg_len})));
  }
  return last;
}

}  // namespace

FakeNetlink::FakeNetlink(Reader& in) : in_(in) {
  present = this;
}
FakeNetlink::~FakeNetlink() {
  present = nullptr;
}

void FakeNetlink::notify(int own) {
  const uint16_t length = in_.u16();
  ByteView bytes = in_.take(std::min<size_t>(length, in_.remaining()));
  if (!bytes.empty()) send(kernelEnds.at(own), bytes);
}

ssize_t FakeNetlink::onRequest(int fd, ByteView request) {
  const nlmsghdr header = lastOf(request);
  uint8_t flags = kMore;
  int error = 0;
  for (size_t sent = 0; (flags & kMore) && sent < kMostDatagrams && in_.remaining() > 0; ++sent) {
    flags = in_.u8();
    const uint16_t length = in_.u16();
    error = flags & (kError | kFails) ? 1 + length % 132 : 0;
    if (flags & kFails) {
      errno = error;
      return -1;
    }
    ByteView answer = in_.take(std::min<size_t>(length, in_.remaining()));
    std::vector<uint8_t> copy(answer.begin(), answer.end());
    if (!(flags & kForeign)) fit(copy, header.nlmsg_seq);
    if (!copy.empty()) send(fd, copy);
  }
  if (!(flags & kOpen)) sendEnd(fd, header, error);
  return static_cast<ssize_t>(request.size());
}

}  // namespace braid::fuzz

using braid::fuzz::present;

extern "C" {

mnl_socket* mnl_socket_open2(int, int) {
  std::array<int, 2> ends{};
  if (!present || ::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()))
    return nullptr;
  braid::fuzz::kernelEnds[ends[0]] = ends[1];
  return new mnl_socket{ends[0], ends[1]};
}
int mnl_socket_bind(mnl_socket*, unsigned, pid_t) {
  return 0;
}
int mnl_socket_get_fd(const mnl_socket* socket) {
  return socket->own;
}
unsigned mnl_socket_get_portid(const mnl_socket*) {
  return braid::fuzz::kPort;
}
int mnl_socket_setsockopt(const mnl_socket*, int, void*, socklen_t) {
  return 0;
}
ssize_t mnl_socket_sendto(const mnl_socket* socket, const void* request, size_t bytes) {
  return present->onRequest(socket->kernel, {static_cast<const uint8_t*>(request), bytes});
}
// What libmnl does, too: a datagram that does not fit is an error.
ssize_t mnl_socket_recvfrom(const mnl_socket* socket, void* to, size_t most) {
  ssize_t got = ::recv(socket->own, to, most, MSG_TRUNC);
  if (got > static_cast<ssize_t>(most)) {
    errno = ENOSPC;
    return -1;
  }
  return got;
}
int mnl_socket_close(mnl_socket* socket) {
  braid::fuzz::kernelEnds.erase(socket->own);
  ::close(socket->own);
  ::close(socket->kernel);
  delete socket;
  return 0;
}
}
