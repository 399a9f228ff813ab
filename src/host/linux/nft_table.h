#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "host/linux/nft_batch.h"

namespace braid {

/// What a table is for, as text for error messages.
struct NftPurpose {
  std::string task;     ///< "cannot take TCP connections over for streams": what failed
  std::string modules;  ///< "nft_tproxy, nft_socket": what the kernel needs
};

/// An nf_tables table of Braid, for IPv4 and IPv6. No other rules of the host are touched. The
/// kernel removes the table when the socket that made it is closed, however the process ends
/// (NFT_TABLE_F_OWNER, Linux 5.12), unless the table is to stay.
class NftTable {
 public:
  enum class Found : uint8_t {
    kRefuse,   ///< a table of this name that is not ours is an error
    kReplace,  ///< it is one that an earlier process left to stay
  };
  /// Throws SystemError.
  NftTable(std::string name, NftPurpose purpose, Found found = Found::kRefuse);
  ~NftTable();
  NftTable(const NftTable&) = delete;
  NftTable& operator=(const NftTable&) = delete;

  /// Writes the chains, sets and rules of the table of this name into a batch.
  using Fill = std::function<void(NftBatch& batch, const std::string& table)>;
  /// Atomically replaces the table's contents by what `fill` writes. If it throws SystemError, the
  /// table is unchanged. `stays`: the table outlives this object and the process.
  void replace(const Fill& fill, bool stays = false);
  /// Removes the table, also one that stays. Throws SystemError when it is still there.
  void remove();
  /// Whether the host has a table of this name.
  bool exists();
  /// Whether the set of the table has an element with this key.
  bool hasElement(const std::string& set, ByteView key);

 private:
  struct Closer {
    void operator()(mnl_socket* s) const { mnl_socket_close(s); }
  };
  [[noreturn]] void fail(int error) const;
  /// Returns an errno; 0: done.
  int tryRemove();
  /// Writes the removal of a table that may not exist.
  void putRemoval(NftBatch& batch) const;
  /// Returns an errno; 0: done.
  int send(NftBatch& batch);
  /// Reads the answers that have arrived, up to the one with this sequence number.
  int answer(uint32_t last);

  std::string name_;
  NftPurpose purpose_;
  std::unique_ptr<mnl_socket, Closer> socket_;
  Found found_;
  bool made_ = false;
  bool stays_ = false;
};

}  // namespace braid
