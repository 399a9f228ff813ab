#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/linux/loop.h"
#include "host/linux/nft_table.h"
#include "host/stream_host.h"
#include "host/unique_fd.h"

namespace braid {

/// Streams' ends on this machine: transparent TCP sockets (IP_TRANSPARENT), and nf_tables' TPROXY to get connections. All
/// sockets are watched by an epoll of their own, once and for every change (EPOLLET): a socket costs no further call, and
/// a reset is heard of also while nobody wants to read.
class LinuxStreamHost final : public StreamHost {
 public:
  /// `device`: names the table. Both others must outlive this. Throws SystemError.
  LinuxStreamHost(Loop& loop, const std::string& device, StreamObserver& observer);

  void intercept(const Interception& what, bool takeNew) override;
  void stopIntercepting() override { table_.remove(); }
  std::optional<Accepted> accept(uint64_t tag, int& error) override;
  void wantAccept(bool on) override;
  void retag(StreamSocket& socket, uint64_t tag) override;
  std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source, const Endpoint& destination,
                                        uint64_t tag, int& error) override;
  size_t most() const override { return most_; }

 private:
  struct Listener {
    UniqueFd fd;
    uint16_t port = 0;
  };
  static Listener listen(Address::Family family);
  /// False: the kernel has no memory for it.
  bool watch(int fd, uint64_t tag, bool again);
  void onReady();
  void turnAway(int listener, int& error);

  StreamObserver& observer_;
  size_t most_;
  UniqueFd epoll_;
  UniqueFd spare_;         ///< a descriptor to give up when there are no others
  Listener listeners_[2];  ///< IPv4, IPv6
  NftTable table_;
  IoWatcher watcher_;
};

}  // namespace braid
