#pragma once

// The messages of a join (docs/protocol.md section 14), and the fragments of `peers-folder`
// (config_fragments.h) that a join writes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dtls/join.h"
#include "gateway/join/invitation.h"
#include "host/network.h"
#include "inet/addresses.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Largest lengths of a message's lists and texts.
inline constexpr size_t kMaxJoinNetworks = 32;
inline constexpr size_t kMaxJoinAddresses = 4;
inline constexpr size_t kMaxJoinText = 255;

struct JoinRequest {
  InvitationId id{};
  JoinSignature signature{};
  std::vector<Prefix>
      networks;  ///< networks behind the edge that are to be reached; at most kMaxJoinNetworks
};

enum class JoinCode : uint8_t {
  kJoined = 0,
  kUnknown = 1,  ///< no such invitation
  kUsed = 2,
  kExpired = 3,
  kNetworks = 4,  ///< the edge cannot have these networks
  kRefused = 5,   ///< the concentrator failed to do it
};

struct JoinAnswer {
  JoinCode code = JoinCode::kRefused;
  std::string text;  ///< for people; with kNetworks and kRefused, or a note with kJoined
  /// With kJoined: the name that the concentrator has for the edge, the concentrator's addresses in
  /// the tunnel, the edge's addresses, and the networks that are reached through the concentrator.
  std::string name;
  std::vector<Address> concentrator;
  std::vector<InterfaceAddress> edge;
  std::vector<Prefix> networks;
};

/// The request without id and signature: the part that is signed.
JoinMessage wishOf(const std::vector<Prefix>& networks);
/// Encode a message in at most kMaxJoinMessage bytes. A text that is too long is cut off.
JoinMessage writeRequest(const JoinRequest& request);
JoinMessage writeAnswer(const JoinAnswer& answer);
/// Whether a gateway may have this name: 1 to 32 letters, digits, dots, dashes and underscores, of
/// which the first is neither dot nor dash. The name becomes part of file names and of the other
/// side's configuration.
bool isJoinName(std::string_view name);
/// nullopt: malformed. Texts are printable().
std::optional<JoinRequest> readRequest(ByteView bytes);
std::optional<JoinAnswer> readAnswer(ByteView bytes);

struct PeerFragment {
  std::string name;
  Pin pin{};
  std::vector<Prefix> prefixes;
  std::vector<Prefix> routes;  ///< into the device
  std::string origin;          ///< a sentence for people that open the file
};

/// The path of this peer's fragment.
std::string fragmentPath(const std::string& folder, const std::string& name);
std::string formatFragment(const PeerFragment& peer);
/// The text of an existing fragment; nullopt: there is none.
std::optional<std::string> readFragmentText(const std::string& path);
/// Replaces the file as writeDurableFile() does, and creates its folder when it is missing (mode
/// 0750). Returns what went wrong; empty: nothing.
std::string writeFragment(const std::string& path, const std::string& text);
/// Returns what went wrong; empty: the file does not exist any more, if it ever did.
std::string removeFragment(const std::string& path);

}  // namespace braid
