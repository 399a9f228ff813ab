#include "host/linux/nft_table.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "host/linux/netlink.h"
#include "host/system.h"

namespace braid {

namespace {
constexpr int kSendBytes = 16 << 20;  // send buffer size; a batch is sent in one piece
}

NftTable::NftTable(std::string name, NftPurpose purpose, Found found)
    : name_(std::move(name)),
      purpose_(std::move(purpose)),
      socket_(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)),
      found_(found) {
  if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0)
    throw SystemError(errno,
                      std::string("cannot open a socket for nf_tables: ") + std::strerror(errno));
  int bytes = kSendBytes;
  ::setsockopt(mnl_socket_get_fd(socket_.get()), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

NftTable::~NftTable() {
  if (made_ && !stays_) tryRemove();
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

// Adding a table that exists already is not an error, and so there is one to delete.
void NftTable::putRemoval(NftBatch& batch) const {
  bool own = made_ && !stays_;
  if (!own) {
    batch.begin(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    batch.put(NFTA_TABLE_NAME, name_);
    batch.put32(NFTA_TABLE_FLAGS, 0);
  }
  batch.begin(NFT_MSG_DELTABLE, 0);
  batch.put(NFTA_TABLE_NAME, name_);
}

void NftTable::replace(const Fill& fill, bool stays) {
  NftBatch batch;
  if (made_ || found_ == Found::kReplace) putRemoval(batch);
  batch.begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  batch.put(NFTA_TABLE_NAME, name_);
  batch.put32(NFTA_TABLE_FLAGS, stays ? 0 : NFT_TABLE_F_OWNER);
  fill(batch, name_);
  batch.end();
  if (int error = send(batch)) fail(error);
  made_ = true;
  stays_ = stays;
}

void NftTable::remove() {
  if (!made_ && found_ == Found::kRefuse) return;
  if (int error = tryRemove()) fail(error);
  made_ = false;
}

// Of a table that only this process can remove, and that is gone, the kernel says ENOENT.
int NftTable::tryRemove() {
  NftBatch batch;
  putRemoval(batch);
  batch.end();
  int error = send(batch);
  return error == ENOENT && made_ && !stays_ ? 0 : error;
}

bool NftTable::exists() {
  alignas(nlmsghdr) char request[MNL_NLMSG_HDRLEN + sizeof(nfgenmsg) + 64]{};
  nlmsghdr* header = mnl_nlmsg_put_header(request);
  header->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* body = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
  body->nfgen_family = NFPROTO_INET;
  mnl_attr_put_strz(header, NFTA_TABLE_NAME, name_.c_str());
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) return true;  // unknown
  return answer(0) != ENOENT;
}

bool NftTable::hasElement(const std::string& set, ByteView key) {
  alignas(nlmsghdr) char request[MNL_NLMSG_HDRLEN + sizeof(nfgenmsg) + 256]{};
  nlmsghdr* header = mnl_nlmsg_put_header(request);
  header->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* body = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
  body->nfgen_family = NFPROTO_INET;
  bool fits =
      mnl_attr_put_strz_check(header, sizeof request, NFTA_SET_ELEM_LIST_TABLE, name_.c_str()) &&
      mnl_attr_put_strz_check(header, sizeof request, NFTA_SET_ELEM_LIST_SET, set.c_str());
  nlattr* list = mnl_attr_nest_start(header, NFTA_SET_ELEM_LIST_ELEMENTS);
  nlattr* element = mnl_attr_nest_start(header, NFTA_LIST_ELEM);
  nlattr* value = mnl_attr_nest_start(header, NFTA_SET_ELEM_KEY);
  fits =
      fits && mnl_attr_put_check(header, sizeof request, NFTA_DATA_VALUE, key.size(), key.data());
  mnl_attr_nest_end(header, value);
  mnl_attr_nest_end(header, element);
  mnl_attr_nest_end(header, list);
  return fits && mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) >= 0 && answer(0) == 0;
}

// Sends the batch and reads the answers. The kernel has answered when the sending call returns.
int NftTable::send(NftBatch& batch) {
  ByteView bytes = batch.bytes();
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) < 0) return errno;
  return answer(batch.lastSequence());
}

int NftTable::answer(uint32_t last) {
  alignas(nlmsghdr) uint8_t buffer[16384];
  int error = 0;
  bool answered = false;
  for (;;) {
    ssize_t got = ::recv(mnl_socket_get_fd(socket_.get()), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    forEachMessage({buffer, static_cast<size_t>(got)}, [&](const nlmsghdr& m) {
      std::optional<int> code = acknowledgment(m);
      if (!code) return;
      if (error == 0) error = *code;
      answered |= m.nlmsg_seq == last;
    });
  }
  return error == 0 && !answered ? EPROTO : error;
}

}  // namespace braid
