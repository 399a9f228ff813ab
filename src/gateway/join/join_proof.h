#pragma once

// The proof that a gateway was invited (docs/protocol.md section 14). The secret of an invitation is the seed of an
// Ed25519 key (RFC 8032): the concentrator keeps the public half alone, so who reads its files cannot join; and what the
// secret signs names both pins and a value of the handshake, so it is worth nothing in another one.

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "gateway/dtls/join.h"
#include "gateway/join/invitation.h"

namespace braid {

/// The public half of an invitation's secret.
using InvitationKey = std::array<uint8_t, 32>;
/// Names an invitation: the first bytes of the SHA-256 of its public half.
using InvitationId = std::array<uint8_t, 8>;
using JoinSignature = std::array<uint8_t, 64>;

/// All throw std::runtime_error when OpenSSL lacks Ed25519.
InvitationKey publicKeyOf(const InvitationSecret& secret);
InvitationId idOf(const InvitationKey& key);

/// What is signed.
struct JoinStatement {
  JoinBinding binding{};
  Pin edge{}, concentrator{};
  ByteView wish;  ///< what the edge asks for: the request behind its signature
};
JoinSignature signJoin(const InvitationSecret& secret, const JoinStatement& statement);
/// Never throws: what cannot be verified is not.
bool verifyJoin(const InvitationKey& key, const JoinSignature& signature, const JoinStatement& statement);

}  // namespace braid
