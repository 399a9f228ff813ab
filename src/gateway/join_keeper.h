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

#include "base/ration.h"
#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/control/invite_request.h"
#include "gateway/dtls/join.h"
#include "gateway/invitation_book.h"
#include "gateway/join/join_messages.h"
#include "gateway/join/peer_fragment.h"
#include "gateway/log.h"

namespace braid {

/// Lets invited gateways in: hands out invitations, checks who comes with one, writes the new peer's fragment and has the
/// configuration read again.
///
///     handshake -> onRequest()   proof and invitation are checked at once, what is good waits
///     turn()                     addresses are chosen, the fragment is written, the configuration read
///     handshake -> onRequest()   the request comes again and gets the answer
///     onPeers()                  the new peer has come up: the invitation is used
///
/// Until then whoever shows the secret takes the place of who did so before, and kGrace after the last one the fragment
/// goes again: what ends in the middle leaves nothing. That somebody joins is in the book before there is a fragment:
/// wherever the daemon is killed, the next one knows whose the fragment is.
class JoinKeeper final : public JoinDesk {
 public:
  /// Requests that wait for turn(), and answers that are kept for repeated requests. Ours.
  static constexpr size_t kMostWaiting = 16, kMostAnswers = 64;
  /// Requests whose proof is looked at. Ours: an honest gateway sends one in a handshake, and the handshake repeats it.
  static constexpr Allowance kProofs{64, 20ms};
  /// Requests that change the configuration. Ours.
  static constexpr Allowance kChanges{8, 2s};
  /// Who has joined and not come up loses its place after so long, and the invitation is open again. By the clock that
  /// nobody sets, and anew for a daemon that starts: while none ran, nobody could come.
  static constexpr Duration kGrace = 10min;
  /// Unsettled invitations are looked at so often.
  static constexpr Duration kTick = 10s;

  using Wall = std::function<int64_t()>;
  using Reached = std::function<std::vector<Prefix>()>;

  /// `config` is the gateway's, as it is at any time; `reload` reads the configuration again and gives what is wrong
  /// with it; `wall` gives seconds since 1970; `reached` as networksOfHost(): may throw SystemError. All must outlive this.
  JoinKeeper(const Config& config, const Pin& own, LogLimiter& log, std::function<std::string()> reload,
             Wall wall, Reached reached);

  /// Reads the invitations of before. Call once the configuration is in place.
  void begin(Time now);
  /// Makes an invitation. `addresses`: where this gateway is reached, when the request names none. Gives its line, or what
  /// is wrong.
  std::variant<Invitation, std::string> invite(const InviteRequest& request, std::vector<HostPort> addresses);

  bool isOpen() const override { return book_ && book_->isOpen(wall_()); }
  std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding& binding, ByteView request,
                                       Time now) override;
  /// Does what waits. Not from inside of the tunnel.
  void turn(Time now);
  /// These peers are up.
  void onPeers(const std::set<std::string>& up);
  /// When to call turn().
  Time deadline() const { return waiting_.empty() ? tick_ : Time::min(); }

 private:
  struct Waiting {
    Pin pin{};
    JoinBinding binding{};
    JoinRequest request;
  };
  JoinAnswer check(const Pin& pin, const JoinBinding& binding, const JoinRequest& request);
  JoinAnswer join(const Waiting& waiting, Time now);
  JoinAnswer takeIn(KeptInvitation& invitation, const Pin& pin, const std::vector<Prefix>& networks);
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
  std::function<std::string()> reload_;
  Wall wall_;
  Reached reached_;
  std::optional<InvitationBook> book_;
  std::deque<Waiting> waiting_;
  std::deque<std::pair<JoinBinding, JoinMessage>> answers_;
  Ration proofs_, changes_;
  Time tick_ = kNever;
  std::map<std::string, Time> unsettled_;  ///< since when, by name
  bool unsaved_ = false;                   ///< the book in memory is ahead of its file
};

}  // namespace braid
