#pragma once

// The line that `braidctl invite` prints and `braidctl join` takes: where the concentrator is, who it is, the secret that
// lets one gateway in, and until when.
//
//     braid-invitation-1/ADDRESS:PORT,.../PIN/SECRET/2026-11-25T08:10:00Z/CHECK
//
// Pin and secret are base64url (RFC 4648 section 5) without padding; CHECK is the first four bytes of the SHA-256 of all
// before its slash, so that a line which was cut or damaged on its way is known.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "host/resolver.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What the lines of all formats begin with.
inline constexpr std::string_view kAnyInvitation = "braid-invitation-";
/// What every line begins with, with the version of its format.
inline constexpr std::string_view kInvitationPrefix = "braid-invitation-1/";
inline constexpr size_t kMaxInvitationAddresses = 8;
/// Longest line in bytes: eight of the longest host names.
inline constexpr size_t kMaxInvitationLine = 4096;

/// The secret of one invitation. Erased with the object.
struct InvitationSecret {
  std::array<uint8_t, 32> bytes{};
  ~InvitationSecret();
  /// Throws std::runtime_error when OpenSSL has no randomness.
  static InvitationSecret draw();
};

struct Invitation {
  std::vector<HostPort>
      addresses;  ///< of the concentrator, numeric ones included; 1 to kMaxInvitationAddresses
  Pin pin{};      ///< the concentrator's
  InvitationSecret secret;
  int64_t expires = 0;  ///< seconds since 1970
};

/// Such a line, without a line end.
std::string formatInvitation(const Invitation& invitation);
/// What is in a line; white space anywhere in it, as of a line that was broken on its way, does not count. Else what is
/// wrong, in plain words with a remedy, and without any part of the line in it.
std::variant<Invitation, std::string> parseInvitation(std::string_view line);

/// "192.0.2.1:4433", "[2001:db8::1]:4433" or "gw.example.net:4433"; nullopt: it is none.
std::optional<HostPort> parseHostPort(std::string_view text);
std::string formatHostPort(const HostPort& address);
/// "2026-11-25T08:10:00Z" (RFC 3339).
std::string formatUtc(int64_t unixSeconds);

}  // namespace braid
