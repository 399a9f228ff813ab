#pragma once

#include <sys/types.h>

#include <cstddef>

#include "base/bytes.h"

namespace braid::fuzz {

/// A kernel that answers netlink requests with bytes of the input, for as long as the object lives.
/// The program's own mnl_socket_... functions (fake_netlink.cc) take the place of libmnl's. There
/// may be one object at a time, and without one no socket opens.
///
/// An answer is a row of datagrams. Each begins with a byte of flags and two for its length; with a
/// length of 0 there are only the flags.
class FakeNetlink {
 public:
  enum Flag : uint8_t {
    kMore = 1,     ///< another datagram of this answer follows
    kForeign = 2,  ///< the messages keep their sequence numbers and senders; else they fit
    kFails = 4,    ///< nothing is answered: sending fails, and the length says with which errno
    kOpen = 8,     ///< no end of the dump, and no acknowledgment, follows the last datagram
    kError = 16,   ///< the end is an error, and the length says which errno it has
  };
  /// More datagrams than this of one answer are left out, because a socket's queue is not longer.
  static constexpr size_t kMostDatagrams = 8;

  explicit FakeNetlink(Reader& in);
  ~FakeNetlink();
  FakeNetlink(const FakeNetlink&) = delete;
  FakeNetlink& operator=(const FakeNetlink&) = delete;

  /// Sends a notification to the open socket with this descriptor: two bytes for its length.
  void notify(int own);
  /// Sends the answer of a request to `fd`. Returns what the call that sends the request does.
  ssize_t onRequest(int fd, ByteView request);

 private:
  Reader& in_;
};

}  // namespace braid::fuzz
