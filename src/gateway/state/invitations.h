#pragma once

// The file in which a concentrator keeps its invitations (`state`.invitations). It holds no secret,
// only the public half of each invitation, so a reader of the file cannot join with it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/join/invitation.h"
#include "inet/addresses.h"

namespace braid {

/// An invitation as the concentrator keeps it.
struct KeptInvitation {
  std::string name;  ///< of the peer that the invitation creates
  InvitationKey key{};
  int64_t expires = 0;           ///< seconds since 1970
  std::vector<Prefix> networks;  ///< networks that the edge reaches through the concentrator
  std::optional<Pin> joined;     ///< pin of the gateway that last showed the secret
  int64_t joinedAt = 0;          ///< seconds since 1970; with `joined`
  /// The peer that joined has come up: no other gateway can take its place any more.
  bool used = false;

  InvitationId id() const { return idOf(key); }
  /// A gateway has joined with it, but its peer has not come up yet.
  bool isUnsettled() const { return joined && !used; }
  bool operator==(const KeptInvitation&) const = default;
};

class InvitationStore {
 public:
  /// Most invitations, including used and expired ones that are remembered.
  static constexpr size_t kMost = 64;
  /// How long a used or expired invitation is remembered, so that a gateway that shows it is told
  /// what is wrong; seconds.
  static constexpr int64_t kRemember = 24 * 3600;

  /// Converts the content of the file. parse() throws std::exception when format() did not write
  /// it.
  static std::vector<KeptInvitation> parse(std::string_view text);
  static std::string format(const std::vector<KeptInvitation>& all);

  InvitationStore() = default;
  /// The file may be missing.
  explicit InvitationStore(std::string path) : path_(std::move(path)) {}

  /// Reads what save() wrote. Throws std::runtime_error when the file cannot be read, or was not
  /// written by save(); the list is then empty.
  void load();
  /// Writes the file as writeDurableFile() does. Returns what went wrong; empty: nothing.
  std::string save() const;

  const std::vector<KeptInvitation>& all() const { return all_; }
  std::vector<KeptInvitation>& all() { return all_; }
  /// nullptr: there is none.
  KeptInvitation* find(const InvitationId& id);
  /// Whether any invitation is remembered. Used and expired ones count, too, so that a gateway that
  /// shows one is told what is wrong.
  bool isOpen(int64_t now) const;
  /// Adds an invitation; it replaces another one of the same name. False when there is no room.
  bool add(KeptInvitation invitation, int64_t now);

 private:
  void forgetOld(int64_t now);

  std::string path_;
  std::vector<KeptInvitation> all_;
};

}  // namespace braid
