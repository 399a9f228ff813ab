#pragma once

// The line that `braidctl invite` prints and `braidctl join` takes. It says where the concentrator
// is, its pin, the secret that lets one gateway join, and until when.
//
//     braid-invitation-1/ADDRESS:PORT,.../PIN/SECRET/2026-11-25T08:10:00Z/CHECK
//
// Pin and secret are base64url (RFC 4648 section 5) without padding. CHECK is the first four bytes
// of the SHA-256 of all that is before its slash, to detect a line that was cut or damaged on its
// way.
//
// The proof that a gateway was invited (docs/protocol.md section 14): the secret of an invitation
// is the seed of an Ed25519 key (RFC 8032). The concentrator keeps only the public half, so a
// reader of its files cannot join. The signature covers both pins and a value of the handshake, so
// it is worth nothing in another handshake.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "gateway/dtls/join.h"
#include "host/host.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The beginning of the lines of all format versions.
inline constexpr std::string_view kAnyInvitation = "braid-invitation-";
/// The beginning of every line of this format version.
inline constexpr std::string_view kInvitationPrefix = "braid-invitation-1/";
inline constexpr size_t kMaxInvitationAddresses = 8;
/// Longest line in bytes; it has room for eight host names of the largest length.
inline constexpr size_t kMaxInvitationLine = 4096;

/// The secret of one invitation. Erased with the object.
struct InvitationSecret {
  std::array<uint8_t, 32> bytes{};
  ~InvitationSecret();
  /// Draws a random secret. Throws std::runtime_error when OpenSSL has no randomness.
  static InvitationSecret draw();
};

struct Invitation {
  std::vector<HostPort>
      addresses;  ///< of the concentrator, numeric ones included; 1 to kMaxInvitationAddresses
  Pin pin{};      ///< the concentrator's
  InvitationSecret secret;
  int64_t expires = 0;  ///< seconds since 1970
};

/// The invitation line, without a line end.
std::string formatInvitation(const Invitation& invitation);
/// Parses a line. White space anywhere in it is ignored, because a line may be broken on its way.
/// If the line is not valid, returns what is wrong, in plain words with a remedy, and without any
/// part of the line.
std::variant<Invitation, std::string> parseInvitation(std::string_view line);

/// "192.0.2.1:4433", "[2001:db8::1]:4433" or "gw.example.net:4433"; nullopt: malformed.
std::optional<HostPort> parseHostPort(std::string_view text);
std::string formatHostPort(const HostPort& address);
/// "2026-11-25T08:10:00Z" (RFC 3339).
std::string formatUtc(int64_t unixSeconds);

/// The public half of an invitation's secret.
using InvitationKey = std::array<uint8_t, 32>;
/// Identifies an invitation: the first bytes of the SHA-256 of its public half.
using InvitationId = std::array<uint8_t, 8>;
using JoinSignature = std::array<uint8_t, 64>;

/// The functions below throw std::runtime_error when OpenSSL lacks Ed25519.
InvitationKey publicKeyOf(const InvitationSecret& secret);
InvitationId idOf(const InvitationKey& key);

/// What the proof signs.
struct JoinStatement {
  JoinBinding binding{};
  Pin edge{}, concentrator{};
  ByteView wish;  ///< what the edge asks for: the part of the request after the signature
};
JoinSignature signJoin(const InvitationSecret& secret, const JoinStatement& statement);
/// Whether this is the signature of `text` by Ed25519 (RFC 8032 section 5.1.7). Never throws;
/// returns false for what cannot be verified.
bool verifyEd25519(const InvitationKey& key, const JoinSignature& signature, ByteView text);
/// verifyEd25519() of the statement's bytes.
bool verifyJoin(const InvitationKey& key, const JoinSignature& signature,
                const JoinStatement& statement);

}  // namespace braid
