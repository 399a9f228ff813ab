#pragma once

#include <libmnl/libmnl.h>

#include <functional>
#include <memory>
#include <string>

#include "host/linux/nft_batch.h"

namespace braid {

/// What a table is for, in words for the user.
struct NftPurpose {
  std::string task;     ///< "cannot take TCP connections over for streams": what failed
  std::string modules;  ///< "nft_tproxy, nft_socket": what the kernel needs
};

/// A table of nf_tables of this process, for all IP families. Nothing else of the host's rules is touched. The kernel
/// removes the table with the socket that made it (NFT_TABLE_F_OWNER, Linux 5.12), however the process ends.
class NftTable {
 public:
  /// Throws SystemError.
  NftTable(std::string name, NftPurpose purpose);
  ~NftTable();
  NftTable(const NftTable&) = delete;
  NftTable& operator=(const NftTable&) = delete;

  /// Puts chains, sets and rules into a batch, for the table of this name.
  using Fill = std::function<void(NftBatch& batch, const std::string& table)>;
  /// The table has what `fill` puts into it, and nothing of before; all at once. Throws SystemError: then the table is as it
  /// was.
  void replace(const Fill& fill);
  void remove();

 private:
  struct Closer {
    void operator()(mnl_socket* s) const { mnl_socket_close(s); }
  };
  [[noreturn]] void fail(int error) const;
  /// errno; 0: done.
  int send(NftBatch& batch);

  std::string name_;
  NftPurpose purpose_;
  std::unique_ptr<mnl_socket, Closer> socket_;
  bool made_ = false;
};

}  // namespace braid
