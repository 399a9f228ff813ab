#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/linux/loop.h"
#include "host/linux/nft_firewall.h"
#include "host/linux/nft_table.h"
#include "host/stream_host.h"
#include "host/system.h"

namespace braid {

/// A kernel TCP socket with TCP_NODELAY, with keepalive, and with a short minimum retransmission
/// timeout where the kernel allows to set one per socket.
class TcpSocket final : public StreamSocket {
 public:
  /// Takes over the descriptor of a connection, or of one that is being opened.
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

/// Opens a socket that may be bound to other hosts' addresses (IP_TRANSPARENT). On failure returns
/// an empty UniqueFd and sets errno.
UniqueFd openTransparent(Address::Family family);

/// The most pieces of a vectored read or write.
inline constexpr size_t kStreamPieces = 64;

/// The host side of streams on Linux. It uses transparent TCP sockets (IP_TRANSPARENT), and
/// nf_tables' TPROXY to intercept connections. All sockets are registered once, edge-triggered
/// (EPOLLET), in an epoll instance of their own, so that a socket costs no further system call, and
/// a reset is noticed even while nobody wants to read.
class LinuxStreamHost final : public StreamHost {
 public:
  /// `device`: gives the nf_tables table its name. `loop` and `observer` must outlive this. Throws
  /// SystemError.
  LinuxStreamHost(Loop& loop, const std::string& device, StreamObserver& observer);

  void intercept(const Interception& what, bool takeNew) override;
  std::optional<std::vector<StreamBarrier>> barriers(const Interception& what,
                                                     const std::vector<StreamApproach>& approaches,
                                                     bool again) override;
  bool canGiveBack() override;
  bool wasLetThrough(const Endpoint& source, const Endpoint& destination) override;
  void giveBack(ByteView syn) override;
  void stopIntercepting() override { table_.remove(); }
  std::optional<Accepted> accept(uint64_t tag, int& error) override;
  void wantAccept(bool on) override;
  void retag(StreamSocket& socket, uint64_t tag) override;
  std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source,
                                        const Endpoint& destination, uint64_t tag,
                                        int& error) override;
  size_t most() const override { return most_; }

 private:
  struct Listener {
    UniqueFd fd;
    uint16_t port = 0;
  };
  static Listener listen(Address::Family family);
  /// Adds a socket to the epoll instance, or with `again` changes its tag. False: the kernel has no
  /// memory for it.
  bool watch(int fd, uint64_t tag, bool again);
  /// Reads the packet filter when it has changed. False: it has not, or it is too early to read it
  /// again.
  bool readFilter();
  void onReady();
  void turnAway(int listener, int& error);

  StreamObserver& observer_;
  std::unique_ptr<NftFirewall> filter_;
  uint32_t filterGeneration_ = 0;
  Time readAgain_ = Time::min();  ///< not before
  size_t most_;
  UniqueFd epoll_;
  UniqueFd spare_;         ///< a descriptor in reserve, see turnAway()
  Listener listeners_[2];  ///< IPv4, IPv6
  UniqueFd raw_[2];        ///< IPv4, IPv6: send whole IP packets; of giveBack()
  NftTable table_;
  IoWatcher watcher_;
};

}  // namespace braid
