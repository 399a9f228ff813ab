#include "host/linux/netlink_socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "host/system_error.h"

namespace braid {

namespace {

constexpr size_t kBufferBytes = 32768;  // what the kernel fills at most per read of a dump
// The kernel answers within the system call that asks; waiting longer means that no answer was owed.
constexpr timeval kAnswerTimeout{5, 0};

constexpr int kRequestTries = 3;

// The kernel had no memory for the request, or for its answer: nobody knows then whether it did what was asked.
bool memoryWasShort(int error) {
  return error == ENOBUFS || error == ENOMEM;
}

// The text of an error message with NLM_F_ACK_TLVS (NETLINK_EXT_ACK); NETLINK_CAP_ACK leaves the request out
// of it.
std::string extendedText(const nlmsghdr& header) {
  if (!(header.nlmsg_flags & NLM_F_ACK_TLVS)) return {};
  std::string text;
  forEachAttribute(header, sizeof(nlmsgerr), [&](const nlattr* a) {
    if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
      text = mnl_attr_get_str(a);
  });
  return text;
}

NetlinkSocket::Answer answerOf(const nlmsghdr& message) {
  if (message.nlmsg_len < mnl_nlmsg_size(sizeof(nlmsgerr))) return {EBADMSG, {}};
  const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&message));
  return {-error->error, extendedText(message)};
}

}  // namespace

NetlinkSocket::NetlinkSocket(uint32_t groups, int receiveBytes)
    : socket_(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC)) {
  if (!socket_)
    throw SystemError(errno, std::string("cannot open a netlink socket: ") + std::strerror(errno));
  if (mnl_socket_bind(socket_.get(), groups, MNL_SOCKET_AUTOPID) < 0) {
    throw SystemError(errno, std::string("cannot bind a netlink socket: ") + std::strerror(errno));
  }
  int on = 1;  // refinements: without them the answers are only longer
  mnl_socket_setsockopt(socket_.get(), NETLINK_EXT_ACK, &on, sizeof on);
  mnl_socket_setsockopt(socket_.get(), NETLINK_CAP_ACK, &on, sizeof on);
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof kAnswerTimeout);
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &receiveBytes, sizeof receiveBytes);
}

NetlinkSocket::Answer NetlinkSocket::request(nlmsghdr& header, const OnMessage& onMessage) {
  Answer answer;
  for (int tries = 0; tries < kRequestTries; ++tries) {
    answer = requestOnce(header, onMessage);
    if (!memoryWasShort(answer.error)) break;
  }
  return answer;
}

NetlinkSocket::Answer NetlinkSocket::requestOnce(nlmsghdr& header, const OnMessage& onMessage) {
  header.nlmsg_flags |= NLM_F_REQUEST;
  // NLM_F_DUMP is two bits, and NLM_F_EXCL is one of the two: both must be there.
  if ((header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) header.nlmsg_flags |= NLM_F_ACK;
  header.nlmsg_seq = ++sequence_;
  if (unfinished_) discard();
  ssize_t sent;
  do sent = mnl_socket_sendto(socket_.get(), &header, header.nlmsg_len);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return {errno, {}};
  return collect(sequence_, onMessage);
}

// The kernel takes no further dump while one waits to be read.
void NetlinkSocket::discard() {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  ssize_t got;
  do got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  while (got >= 0 || errno == EINTR || errno == ENOBUFS);
}

NetlinkSocket::Answer NetlinkSocket::collect(uint32_t sequence, const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  bool interrupted = false;
  std::optional<Answer> answer;
  unfinished_ = true;
  while (!answer) {
    ssize_t got = mnl_socket_recvfrom(socket_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {errno, {}};
    forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
      if (answer || m.nlmsg_seq != sequence) return;
      interrupted |= (m.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (m.nlmsg_type == NLMSG_DONE) {
        answer = interrupted ? Answer{EINTR, "changed while it was read"} : Answer{};
      } else if (m.nlmsg_type == NLMSG_ERROR) {
        answer = answerOf(m);
      } else if (onMessage) {
        onMessage(m);
      }
    });
  }
  unfinished_ = false;
  return *answer;
}

NetlinkSocket::Answer NetlinkSocket::dumpOnce(uint16_t type, uint8_t family, const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[256];
  nlmsghdr* header = mnl_nlmsg_put_header(buffer);
  header->nlmsg_type = type;
  header->nlmsg_flags = NLM_F_DUMP;
  // The family stands first in each of the request headers; the largest of them fits all.
  auto* body = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(header, sizeof(ifinfomsg)));
  body->ifi_family = family;
  return requestOnce(*header, onMessage);
}

void NetlinkSocket::dump(uint16_t type, uint8_t family, const OnMessage& onMessage) {
  for (int attempt = 0;; ++attempt) {
    Answer answer = dumpOnce(type, family, onMessage);
    if (answer.error == 0) return;
    if ((answer.error == EINTR || memoryWasShort(answer.error)) && attempt < 8) continue;
    throw SystemError(answer.error, "netlink dump failed: " + std::string(std::strerror(answer.error)));
  }
}

NetlinkSocket::Heard NetlinkSocket::hear(const OnMessage& onMessage) {
  alignas(nlmsghdr) uint8_t buffer[kBufferBytes];
  ssize_t got;
  do got = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno == ENOBUFS ? Heard::kOverrun : Heard::kNothing;
  if (static_cast<size_t>(got) > sizeof buffer) return Heard::kOverrun;  // the rest of it is lost
  forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
    if (m.nlmsg_type >= NLMSG_MIN_TYPE) onMessage(m);
  });
  return Heard::kMessages;
}

}  // namespace braid
