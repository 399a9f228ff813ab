#pragma once

#include <array>
#include <cstdint>

#include "tunnel/wire/version.h"

namespace braid {

/// SHA-256 of a certificate's SubjectPublicKeyInfo (RFC 7469 section 2.4): how a peer is known.
using Pin = std::array<uint8_t, 32>;

/// AEADs that seal datagrams; both sides take the one of the handshake's cipher suite.
enum class AeadKind : uint8_t { kAes128Gcm, kAes256Gcm, kChaCha20Poly1305 };

/// What a finished handshake gives: the same at both sides. The secrets are erased with the object.
struct SessionSecrets {
  AeadKind aead = AeadKind::kAes128Gcm;
  std::array<uint8_t, 32> initiatorSecret{};  ///< traffic secret, initiator to responder
  std::array<uint8_t, 32> responderSecret{};  ///< traffic secret, responder to initiator
  uint32_t sessionId = 0;                     ///< names the session in datagram headers, both directions
  Pin peer{};                                 ///< the other side's certificate
  ProtocolVersion version = kProtocolVersions.front();  ///< that both sides speak in this session

  ~SessionSecrets() { erase(); }
  /// Overwrites the secrets.
  void erase();
};

}  // namespace braid
