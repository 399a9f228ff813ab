#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace braid {

/// What OpenSSL gets to see of a handshake's datagram. OpenSSL keeps what comes too early: up to 100 encrypted records
/// in 16 KB each, and messages of up to 16 KB that are announced and never come. So encrypted records are withheld
/// until their time has come, and long messages are not let in.
struct DtlsFilter {
  /// The longest handshake message. Ours: a certificate has about 500 bytes.
  static constexpr size_t kMaxMessage = 2048;
  /// The most bytes of encrypted records in a datagram: one Finished, and an alert. Ours.
  static constexpr size_t kMaxSealed = 256;

  /// A datagram's records in the clear (epoch 0), and the encrypted ones behind them.
  struct Parts {
    ByteView clear, sealed;
  };
  /// The parts that may pass; what follows a record that may not is cut off.
  static Parts split(ByteView datagram);
};

}  // namespace braid
