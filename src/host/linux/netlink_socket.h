#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace braid {

/// Calls visit(const nlattr*) for each whole attribute from `begin` to `end`.
template <typename Visit>
void forEachAttributeIn(const void* begin, const void* end, Visit&& visit) {
  const auto* at = static_cast<const nlattr*>(begin);
  auto left = [&] {
    return static_cast<int>(static_cast<const char*>(end) - reinterpret_cast<const char*>(at));
  };
  for (; mnl_attr_ok(at, left()); at = mnl_attr_next(at)) visit(at);
}

/// Calls visit(const nlattr*) for each attribute behind a family header of that many bytes.
template <typename Visit>
void forEachAttribute(const nlmsghdr& message, size_t headerBytes, Visit&& visit) {
  forEachAttributeIn(mnl_nlmsg_get_payload_offset(&message, headerBytes),
                     mnl_nlmsg_get_payload_tail(&message), visit);
}

/// Calls visit(const nlattr*) for each attribute within an attribute.
template <typename Visit>
void forEachNested(const nlattr* nest, Visit&& visit) {
  const auto* payload = static_cast<const char*>(mnl_attr_get_payload(nest));
  forEachAttributeIn(payload, payload + mnl_attr_get_payload_len(nest), visit);
}

/// Calls visit(const nlmsghdr&) for each whole message of what was read; `bytes` is aligned for one.
template <typename Visit>
void forEachMessage(std::span<const uint8_t> bytes, Visit&& visit) {
  int left = static_cast<int>(bytes.size());
  // libmnl takes a length of 2^31 and more for a negative one, which is never too large, and goes backwards.
  auto isWhole = [&](const nlmsghdr* m) {
    return mnl_nlmsg_ok(m, left) && m->nlmsg_len <= static_cast<uint32_t>(left);
  };
  for (const auto* m = reinterpret_cast<const nlmsghdr*>(bytes.data()); isWhole(m);
       m = mnl_nlmsg_next(m, &left))
    visit(*m);
}

/// A rtnetlink socket (libmnl). Requests are answered at once by the kernel, so their calls block only for as
/// long as the kernel works on them.
class NetlinkSocket {
 public:
  using OnMessage = std::function<void(const nlmsghdr&)>;

  /// What the kernel keeps of notifications: a burst of route changes must not overrun it easily.
  static constexpr int kReceiveBytes = 1 << 20;

  /// `groups`: RTMGRP_* bits to hear of. Throws SystemError.
  explicit NetlinkSocket(uint32_t groups, int receiveBytes = kReceiveBytes);

  int fd() const { return mnl_socket_get_fd(socket_.get()); }

  struct Answer {
    int error = 0;        ///< errno; 0: done
    std::string message;  ///< the kernel's own words about an error (NLMSGERR_ATTR_MSG); may be empty
  };
  /// Sends a request that the kernel acknowledges, gives what it answers before that to onMessage. One that fails
  /// for want of memory is made again, so it must do no harm twice; onMessage then gets what it had before again.
  Answer request(nlmsghdr& header, const OnMessage& onMessage = {});
  /// RTM_GET* dump. EINTR: what was listed changed meanwhile, so something may be missing or old.
  Answer dumpOnce(uint16_t type, uint8_t family, const OnMessage& onMessage);
  /// The same, a few times until nothing changes meanwhile: onMessage then gets what it had before again.
  /// Throws SystemError.
  void dump(uint16_t type, uint8_t family, const OnMessage& onMessage);

  enum class Heard : uint8_t { kNothing, kMessages, kOverrun };
  /// Non-blocking read of one batch of notifications; kOverrun: the kernel had to drop some (ENOBUFS), and
  /// drops all others without a further word until everything that waits has been read.
  Heard hear(const OnMessage& onMessage);

 private:
  struct Closer {
    void operator()(mnl_socket* s) const { mnl_socket_close(s); }
  };
  Answer requestOnce(nlmsghdr& header, const OnMessage& onMessage);
  Answer collect(uint32_t sequence, const OnMessage& onMessage);
  void discard();

  std::unique_ptr<mnl_socket, Closer> socket_;
  uint32_t sequence_ = 0;
  bool unfinished_ = false;  // an answer was not read to its end
};

}  // namespace braid
