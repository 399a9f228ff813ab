#pragma once

// What is said when a gateway joins (docs/protocol.md section 14).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dtls/join.h"
#include "gateway/join/join_proof.h"
#include "host/host_network.h"
#include "inet/prefix.h"

namespace braid {

/// What lists of a message hold at most.
inline constexpr size_t kMaxJoinNetworks = 32;
inline constexpr size_t kMaxJoinAddresses = 4;
inline constexpr size_t kMaxJoinText = 255;

struct JoinRequest {
  InvitationId id{};
  JoinSignature signature{};
  std::vector<Prefix> networks;  ///< behind the edge, which it wants to be reached; at most kMaxJoinNetworks
};

enum class JoinCode : uint8_t {
  kJoined = 0,
  kUnknown = 1,  ///< no such secret
  kUsed = 2,
  kExpired = 3,
  kNetworks = 4,  ///< the networks cannot be had
  kRefused = 5,   ///< the concentrator could not do it
};

struct JoinAnswer {
  JoinCode code = JoinCode::kRefused;
  std::string text;  ///< for people, of kNetworks and kRefused
  /// Of kJoined: the name that the concentrator knows the edge by; its own addresses in the tunnel; those of the edge;
  /// and the networks that are reached through it.
  std::string name;
  std::vector<Address> concentrator;
  std::vector<InterfaceAddress> edge;
  std::vector<Prefix> networks;
};

/// The request without id and signature: what is signed.
JoinMessage wishOf(const std::vector<Prefix>& networks);
/// Both give at most kMaxJoinMessage bytes. What is too long of a text is cut off.
JoinMessage writeRequest(const JoinRequest& request);
JoinMessage writeAnswer(const JoinAnswer& answer);
/// Whether a gateway may be called so: 1 to 32 letters, digits, dots, dashes and underscores, of which the first is neither
/// dot nor dash. The name is part of file names and of the other side's configuration.
bool isJoinName(std::string_view name);
/// nullopt: malformed. Texts of others hold no control characters: these become '?'.
std::optional<JoinRequest> readRequest(ByteView bytes);
std::optional<JoinAnswer> readAnswer(ByteView bytes);

}  // namespace braid
