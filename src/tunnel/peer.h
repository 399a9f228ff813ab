#pragma once

// A configured peer: it keeps one session with it alive. The initiator tries every route until a handshake
// ends well, and again when the peer has fallen silent; the responder takes the newest session that the peer
// proves to have.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tunnel/handshake.h"
#include "tunnel/io.h"
#include "tunnel/options.h"
#include "tunnel/peer_owner.h"
#include "tunnel/session/session.h"
#include "tunnel/uplink_accounts.h"

namespace braid {

class Peer final : public SessionOwner {
 public:
  /// A second route is tried when the first has not answered for so long (RFC 8305 section 5: connection
  /// attempt delay).
  static constexpr Duration kAttemptDelay = 250ms;
  /// Pause after all routes failed; doubles up to the longest.
  static constexpr Duration kFirstPause = 500ms;
  static constexpr Duration kLongestPause = 8s;
  /// With no usable subflow for so long the initiator starts over, in case the peer has lost its keys.
  static constexpr Duration kStartOver = 1500ms;
  /// A session in which nothing was heard for so long is dropped.
  static constexpr Duration kForget = 180s;
  /// Sessions that the peer may still choose from, and how long it has for it.
  static constexpr size_t kMaxCandidates = 4;
  static constexpr Duration kForgetCandidate = kHandshakeTimeout;

  Peer(PeerOptions options, const TunnelOptions& tunnel, PacketPool& pool, HandshakeProvider& handshakes,
       PeerOwner& owner, Random random);
  ~Peer() override;

  const PeerOptions& options() const { return options_; }
  void setOptions(PeerOptions options, Time now);
  void setTunables();
  /// Where to start subflows from; names tell routes apart and stay.
  struct NamedRoute {
    std::string name;
    std::string uplink;
    Route route;
    PathPreference own{};    ///< how this side uses it
    PathPreference peers{};  ///< and what the peer is told
    std::shared_ptr<Pacer> ceiling{};
  };
  void setUplinks(const std::vector<UplinkAccount>& uplinks, Time now);

  /// The session to send by; nullptr when the peer is not up.
  Session* session() {
    return session_ && session_->confirmed() && !session_->over() ? session_.get() : nullptr;
  }
  const Session* session() const { return const_cast<Peer*>(this)->session(); }
  bool isUp() const { return up_; }
  /// Every session there is, to be polled.
  template <typename F>
  void forEachSession(F&& f) const {
    if (session_) f(*session_);
    for (const auto& candidate : candidates_) f(*candidate);
  }

  /// A handshake of ours on this route, if there is one; it is fed. True when it was taken.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// A handshake that the peer initiated is done.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// A datagram for a session of this peer.
  std::optional<Drop> onDatagram(Session& session, const DatagramHeader& header, const Route& from, Ecn ecn,
                                 Packet datagram, Time now);
  void onTimer(Time now);
  bool pollHandshake(Datagram& out, Time now);
  Time nextDeadline(Time now) const;
  void close();
  PeerStatus status(Time now) const;

  // SessionOwner
  void onDelivered(Packet packet) override { owner_.onDelivered(*this, std::move(packet)); }
  void onEvent(Event event) override;
  void onDrop(Drop cause, uint64_t count) override { owner_.onDrop(cause, count); }
  void onTooLarge(ByteView packet) override { owner_.onTooLarge(*this, packet); }
  void onPacketDropped(ByteView packet) override { owner_.onPacketDropped(packet); }

 private:
  struct Attempt {
    Route route;
    std::unique_ptr<Handshake> handshake;  ///< none yet: its turn has not come
    Time startAt;
  };
  bool needsSession(Time now) const;
  bool isPathless(Time now) const;
  bool crosses(const Session& candidate, Time now) const;
  void connect(Time now);
  void startAttempts(Time now);
  void checkAttempts(Time now);
  void adopt(std::unique_ptr<Session> session, Time now);
  void drop(std::unique_ptr<Session>& session);
  void openSubflows(Time now);

  PeerOptions options_;
  const TunnelOptions& tunnel_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  PeerOwner& owner_;
  Random random_;
  std::vector<NamedRoute> routes_;
  std::unique_ptr<Session> session_;
  /// Responder: handshake done, nothing heard under its keys yet. Oldest first.
  std::vector<std::unique_ptr<Session>> candidates_;
  std::vector<Attempt> attempts_;
  std::deque<Datagram> alerts_;  ///< last words of failed attempts
  Time nextTry_ = Time::min();
  Duration pause_ = kFirstPause;
  std::string lastError_;
  bool up_ = false;
};

}  // namespace braid
