#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/control/requests.h"
#include "gateway/dtls/join.h"
#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "gateway/log/log.h"
#include "gateway/state/invitations.h"

namespace braid {

/// What a JoinService asks its gateway and its host for.
struct JoinEnvironment {
  /// Puts the text of one fragment into effect, or its absence, and nothing else that was edited.
  /// Returns what is wrong with it.
  std::function<std::string(const std::string& file, const std::optional<std::string>& text)> apply;
  std::function<std::string()> unapplied;  ///< unappliedEdits()
  std::function<int64_t()> wall;           ///< seconds since 1970
  /// networksOfHost(); may throw SystemError.
  std::function<std::vector<Prefix>()> reached;
};

/// Lets invited gateways join: creates invitations, checks the gateways that show one, writes the
/// new peer's fragment and puts it into effect. What an operator has edited and not applied yet
/// stays so, and is named in the log and in the answer.
///
/// 1. handshake -> onRequest(): checks proof and invitation at once; a valid request waits.
/// 2. turn(): chooses addresses, writes the fragment and puts it into effect.
/// 3. handshake -> onRequest(): the repeated request gets the answer.
/// 4. onPeers(): the new peer has come up; the invitation is used.
///
/// A holder of the pin alone has nothing to use up here: a request that names no invitation costs
/// no signature and is not remembered. What a holder of an invitation may cause is rationed by
/// invitation.
///
/// Before step 4, a gateway that shows the secret replaces the one that showed it before. If none
/// has come up kGrace after the last one, the fragment is removed again, so that an interrupted
/// join leaves nothing behind. The invitation file records the join before the fragment is written.
/// So if the daemon is killed at any point, the next one knows which invitation the fragment
/// belongs to.
class JoinService final : public JoinHandler {
 public:
  /// Most requests that wait for turn(), and most answers that are kept for repeated requests.
  static constexpr size_t kMostWaiting = 16, kMostAnswers = 64;
  /// Rate limit of requests whose proof is checked, for each invitation. An honest gateway sends
  /// one request per handshake, and the handshake repeats it.
  static constexpr RateLimit kProofs{16, 100ms};
  /// Rate limit of requests that change the configuration, for each invitation.
  static constexpr RateLimit kOwnChanges{4, 8s};
  /// Rate limit of such requests for all invitations together, the first of each not counted.
  static constexpr RateLimit kChanges{8, 2s};
  /// A gateway that has joined and not come up loses its place after this time, and the invitation
  /// is open again. Measured on the monotonic clock, from the start of the daemon at the earliest,
  /// because no gateway could come up while no daemon ran.
  static constexpr Duration kGrace = 10min;
  /// Interval at which unsettled invitations are checked.
  static constexpr Duration kTick = 10s;

  /// `config` is the gateway's present configuration. `config` and `log` must outlive this.
  JoinService(const Config& config, const Pin& own, LogLimiter& log, JoinEnvironment environment);

  /// Reads the invitations from the file. Call once the configuration is in effect.
  void begin(Time now);
  /// Creates an invitation. `addresses`: where this gateway is reached, used when the request names
  /// none. Returns the invitation, or what is wrong.
  std::variant<Invitation, std::string> invite(const InviteRequest& request,
                                               std::vector<HostPort> addresses);

  /// What is to be told with an invitation: the address family that it leaves in clear, and edits
  /// of the configuration that a join does not apply. Empty: nothing.
  std::string notesOn(const InviteRequest& request) const;

  bool isOpen() const override { return book_ && book_->isOpen(environment_.wall()); }
  std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding& binding, ByteView request,
                                       Time now) override;
  /// Processes the waiting requests. Must not be called from within the tunnel.
  void turn(Time now);
  /// Tells which peers are up.
  void onPeers(const std::set<std::string>& up);
  /// When to call turn().
  Time deadline() const { return waiting_.empty() ? tick_ : Time::min(); }

 private:
  struct Waiting {
    Pin pin{};
    JoinBinding binding{};
    JoinRequest request;
  };
  struct Rations {
    TokenBucket proofs, changes;
  };
  bool mayChange(const KeptInvitation& invitation, Time now);
  JoinAnswer check(const Pin& pin, const JoinBinding& binding, const JoinRequest& request);
  JoinAnswer join(const Waiting& waiting, Time now);
  JoinAnswer takeIn(KeptInvitation& invitation, const Pin& pin,
                    const std::vector<Prefix>& networks);
  std::string record(KeptInvitation& invitation, const Pin& pin, const PeerFragment& fragment);
  std::string change(const std::string& path, const std::optional<std::string>& text);
  void withdrawLate(Time now);
  Time nextTick(Time now) const;
  void save();
  void keepAnswer(const JoinBinding& binding, const JoinAnswer& answer);
  std::string refuseInvitation(const InviteRequest& request) const;
  bool isUnsettled(const std::string& name) const;

  const Config& config_;
  Pin own_;
  LogLimiter& log_;
  JoinEnvironment environment_;
  std::optional<InvitationStore> book_;
  std::deque<Waiting> waiting_;
  std::deque<std::pair<JoinBinding, JoinMessage>> answers_;
  TokenBucket changes_;
  std::map<InvitationId, Rations> rations_;  ///< of invitations in the book
  Time tick_ = kNever;
  std::map<std::string, Time> unsettled_;  ///< by name, since when
  bool unsaved_ = false;                   ///< the invitations in memory are newer than the file
};

}  // namespace braid
