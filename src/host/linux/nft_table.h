#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "host/stream_host.h"

namespace braid {

/// The nf_tables table `braid-DEVICE` of this process: it hands new TCP connections to listeners of this host, and marks
/// the packets of those that are there. Nothing else of the host's rules is touched. The kernel removes the table with the
/// socket that made it (NFT_TABLE_F_OWNER, Linux 5.12), however the process ends.
class NftTable {
 public:
  /// Throws SystemError.
  explicit NftTable(const std::string& device);
  ~NftTable();
  NftTable(const NftTable&) = delete;
  NftTable& operator=(const NftTable&) = delete;

  /// The listeners at 127.0.0.1 and ::1 get what `what` names; without `takeNew` no new connections. All at once.
  /// Throws SystemError: then the table is as it was.
  void set(const Interception& what, bool takeNew, uint16_t portV4, uint16_t portV6);
  void remove();

 private:
  struct Closer {
    void operator()(mnl_socket* s) const { mnl_socket_close(s); }
  };
  /// errno; 0: done.
  int send(class NftBatch& batch);

  std::string name_;
  std::unique_ptr<mnl_socket, Closer> socket_;
  bool made_ = false;
};

}  // namespace braid
