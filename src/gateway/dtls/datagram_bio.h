#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "gateway/dtls/openssl_handle.h"

namespace braid {

/// What an SSL reads and writes instead of a socket: one datagram at a time in, a short queue out. OpenSSL's
/// own memory BIO would run datagrams together.
class DatagramPipe {
 public:
  /// Datagrams kept; the oldest goes when one more is written. A flight of ours has at most four.
  static constexpr size_t kMaxQueued = 8;

  /// A BIO on this pipe, which must outlive it.
  BioHandle makeBio();
  /// The next datagram that the SSL reads; replaces one that was not read. The bytes must stay until
  /// closeInput().
  void openInput(ByteView datagram);
  void closeInput() { openInput({}); }

  std::deque<std::vector<uint8_t>>& output() { return output_; }

 private:
  static int write(BIO* bio, const char* bytes, int size);
  static int read(BIO* bio, char* out, int size);
  static long control(BIO* bio, int command, long, void*);
  static BIO_METHOD* method();

  ByteView input_;
  std::deque<std::vector<uint8_t>> output_;
};

}  // namespace braid
