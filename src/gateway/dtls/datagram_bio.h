#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "gateway/dtls/identity.h"

namespace braid {

/// What an SSL object reads and writes instead of a socket: one datagram at a time inwards, and a
/// short queue outwards. OpenSSL's own memory BIO does not keep the borders between datagrams.
class DatagramPipe {
 public:
  /// Most queued datagrams; then the oldest is dropped. A flight of this implementation has at most
  /// four.
  static constexpr size_t kMaxQueued = 8;

  /// A BIO on this pipe. The pipe must outlive it.
  BioHandle makeBio();
  /// Sets the next datagram that the SSL object reads; replaces one that was not read. The bytes
  /// must stay valid until closeInput().
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
