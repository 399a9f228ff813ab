#pragma once

#include <cstdint>
#include <memory>

#include "host/stream_host.h"
#include "host/unique_fd.h"

namespace braid {

/// A kernel's TCP socket, without delay (TCP_NODELAY), with keepalive, and with a short least retransmission timeout where
/// the kernel has one for a socket.
class TcpSocket final : public StreamSocket {
 public:
  /// Takes the descriptor of a connection, or of one that is being opened.
  explicit TcpSocket(UniqueFd fd);

  int fd() const { return fd_.get(); }

  int connectError() override;
  int takeError() override;
  Moved read(std::span<const ByteSpan> into) override;
  Moved write(std::span<const ByteView> from) override;
  void shutdownWrite() override;
  void close() override;

 private:
  UniqueFd fd_;
};

/// A socket that may have other hosts' addresses; nothing owned: errno says why.
UniqueFd openTransparent(Address::Family family);

/// Pieces of a vectored read or write, at most.
inline constexpr size_t kStreamPieces = 64;

}  // namespace braid
