#include "host/linux/conntrack.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "host/linux/netlink.h"
#include "host/system.h"

namespace braid {

namespace {

struct Closer {
  void operator()(mnl_socket* s) const { mnl_socket_close(s); }
};

/// Sends a request and returns the errno of the kernel's answer, which has come when the sending
/// call returns; 0: done.
int ask(mnl_socket* socket, nlmsghdr& request) {
  alignas(nlmsghdr) uint8_t buffer[1024];
  if (mnl_socket_sendto(socket, &request, request.nlmsg_len) < 0) return errno;
  ssize_t got = 0;
  do {
    got = mnl_socket_recvfrom(socket, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  int error = EPROTO;
  forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& message) {
    if (message.nlmsg_seq == request.nlmsg_seq) error = acknowledgment(message).value_or(error);
  });
  return error;
}

}  // namespace

// A removal that names no connection is one of all that its conditions fit.
void forgetConnections(uint32_t mark, uint32_t mask) {
  alignas(nlmsghdr) char buffer[MNL_NLMSG_HDRLEN + sizeof(nfgenmsg) + 64]{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer);
  request->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request->nlmsg_seq = 1;
  auto* body = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(nfgenmsg)));
  body->nfgen_family = AF_UNSPEC;
  body->version = NFNETLINK_V0;
  mnl_attr_put_u32(request, CTA_MARK, htonl(mark));
  mnl_attr_put_u32(request, CTA_MARK_MASK, htonl(mask));
  std::unique_ptr<mnl_socket, Closer> socket(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC));
  int error = !socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0
                  ? errno
                  : ask(socket.get(), *request);
  if (error == 0) return;
  std::string text = "connections that began through the tunnel go on with their old addresses: ";
  text += std::strerror(error);
  if (error == EINVAL || error == EOPNOTSUPP)
    text += "; the kernel needs its module nf_conntrack_netlink";
  throw SystemError(error, text);
}

}  // namespace braid
