#include "host/linux/nft_table.h"

#include <linux/netfilter/nf_tables.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "host/linux/netlink_socket.h"
#include "host/system_error.h"

namespace braid {

namespace {
constexpr int kSendBytes = 16 << 20;  // a batch goes in one piece
}

NftTable::NftTable(std::string name, NftPurpose purpose)
    : name_(std::move(name)),
      purpose_(std::move(purpose)),
      socket_(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)) {
  if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0)
    throw SystemError(errno, std::string("cannot open a socket for nf_tables: ") + std::strerror(errno));
  int bytes = kSendBytes;
  ::setsockopt(mnl_socket_get_fd(socket_.get()), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

NftTable::~NftTable() {
  remove();
}

void NftTable::fail(int error) const {
  std::string what = purpose_.task + ": ";
  if (error == EPERM || error == EACCES) throw SystemError(error, what + kNetAdminRemedy);
  what += std::string("nf_tables says ") + std::strerror(error);
  if (error == ENOENT || error == EOPNOTSUPP || error == EPROTONOSUPPORT)
    what += "; the kernel needs nf_tables (Linux 5.12) and its modules " + purpose_.modules;
  if (error == EEXIST)
    what += "; there is a table of this name: 'nft delete table inet " + name_ + "' removes it";
  throw SystemError(error, what);
}

void NftTable::replace(const Fill& fill) {
  NftBatch batch;
  if (made_) {
    batch.begin(NFT_MSG_DELTABLE, 0);
    batch.put(NFTA_TABLE_NAME, name_);
  }
  batch.begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  batch.put(NFTA_TABLE_NAME, name_);
  batch.put32(NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
  fill(batch, name_);
  batch.end();
  if (int error = send(batch)) fail(error);
  made_ = true;
}

void NftTable::remove() {
  if (!made_) return;
  NftBatch batch;
  batch.begin(NFT_MSG_DELTABLE, 0);
  batch.put(NFTA_TABLE_NAME, name_);
  batch.end();
  send(batch);
  made_ = false;
}

// The kernel has answered when the call that sends returns.
int NftTable::send(NftBatch& batch) {
  ByteView bytes = batch.bytes();
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) < 0) return errno;
  alignas(nlmsghdr) uint8_t buffer[16384];
  int error = 0;
  bool answered = false;
  for (;;) {
    ssize_t got = ::recv(mnl_socket_get_fd(socket_.get()), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
      if (m.nlmsg_type != NLMSG_ERROR || m.nlmsg_len < mnl_nlmsg_size(sizeof(nlmsgerr))) return;
      int code = -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&m))->error;
      if (error == 0) error = code;
      answered |= m.nlmsg_seq == batch.lastSequence();
    });
  }
  return error == 0 && !answered ? EPROTO : error;
}

}  // namespace braid
