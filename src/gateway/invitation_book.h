#pragma once

// The file in which a concentrator keeps its invitations (`state`.invitations). It holds no secret: of each invitation the
// public half alone, so who reads the file can let nobody in.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/join/join_proof.h"
#include "inet/prefix.h"

namespace braid {

/// An invitation as its concentrator keeps it.
struct KeptInvitation {
  std::string name;  ///< of the peer that it makes
  InvitationKey key{};
  int64_t expires = 0;           ///< seconds since 1970
  std::vector<Prefix> networks;  ///< that the edge reaches through the concentrator
  std::optional<Pin> joined;     ///< who has shown the secret last
  int64_t joinedAt = 0;          ///< seconds since 1970; with `joined`
  bool used = false;             ///< the peer that joined has come up: nobody takes its place any more

  InvitationId id() const { return idOf(key); }
  /// Somebody has joined with it, whose peer has not come up yet.
  bool isUnsettled() const { return joined && !used; }
  bool operator==(const KeptInvitation&) const = default;
};

class InvitationBook {
 public:
  /// Invitations at once, used and expired ones that are remembered included. Ours.
  static constexpr size_t kMost = 64;
  /// One that is used or has expired is remembered for so long, to say so to who comes with it; seconds.
  static constexpr int64_t kRemember = 24 * 3600;

  /// What the file holds. parse() throws std::exception when it is none of ours.
  static std::vector<KeptInvitation> parse(std::string_view text);
  static std::string format(const std::vector<KeptInvitation>& all);

  InvitationBook() = default;
  /// The file need not be there.
  explicit InvitationBook(std::string path) : path_(std::move(path)) {}

  /// Reads what save() wrote. Throws std::runtime_error when it cannot be read, or is none of ours: then there are none.
  void load();
  /// Writes the file, as writeDurableFile() does. Gives what went wrong; empty: nothing.
  std::string save() const;

  const std::vector<KeptInvitation>& all() const { return all_; }
  std::vector<KeptInvitation>& all() { return all_; }
  /// nullptr: there is none.
  KeptInvitation* find(const InvitationId& id);
  KeptInvitation* findName(std::string_view name);
  /// Whether somebody may come with one, if only to hear that it is over.
  bool isOpen(int64_t now) const;
  /// Adds it, in the place of another of that name. False when there is no room.
  bool add(KeptInvitation invitation, int64_t now);

 private:
  void forgetOld(int64_t now);

  std::string path_;
  std::vector<KeptInvitation> all_;
};

}  // namespace braid
