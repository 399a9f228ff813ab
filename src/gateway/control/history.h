#pragma once

// What the paths of this gateway carried and lost in the last hour, and what happened meanwhile.
// Used by `braidctl explain` and the web page. Single owner. Bounded: a ring of steps for each path
// and each peer, and a ring of events.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/containers.h"
#include "base/field.h"
#include "base/time.h"
#include "tunnel/api/status.h"
#include "tunnel/session/event.h"

namespace braid {

/// What all subflows of a path did in one step. Its losses are losses of packets that this gateway
/// sent.
struct PathStep : SendCounts, ReceiveCounts, ProtectionCounts {
  int64_t until = 0;
  std::string state;
  Duration srtt{}, queueDelay{};
};
template <>
inline constexpr auto kFieldsOf<PathStep> = field::table<PathStep>(
    field::base<SendCounts>(), field::base<ReceiveCounts>(), field::base<ProtectionCounts>(),
    field::gauge("until_unix_s", FieldUnit::kUnixSeconds, "end of the step", &PathStep::until),
    field::text("state", "of its best subflow at the end of the step", &PathStep::state),
    field::gauge("srtt_ms", FieldUnit::kMilliseconds, "smoothed RTT of that one", &PathStep::srtt),
    field::gauge("queue_delay_ms", FieldUnit::kMilliseconds, "what packets waited for on its way",
                 &PathStep::queueDelay));

/// What was carried to and from a peer in one step.
struct PeerStep : CarriedCounts, OutboundCounts, InboundCounts {
  int64_t until = 0;
  bool up = false;
  uint64_t restored = 0;
};
template <>
inline constexpr auto kFieldsOf<PeerStep> = field::table<PeerStep>(
    field::base<CarriedCounts>(), field::base<OutboundCounts>(), field::base<InboundCounts>(),
    field::gauge("until_unix_s", FieldUnit::kUnixSeconds, "end of the step", &PeerStep::until),
    field::flag("up", "the peer was up at the end of the step", &PeerStep::up),
    field::counter("packets_decoded", FieldUnit::kPackets,
                   "packets that decoding gave back, as receiver", &PeerStep::restored));

/// An event of the tunnel with its wall-clock time.
struct PastEvent {
  double at = 0;
  std::string kind;
  std::string peer;
  std::string path;
  std::string text;
  double last = 0;
  uint64_t count = 1;
};
template <>
inline constexpr auto kFieldsOf<PastEvent> = field::table<PastEvent>(
    field::gauge("at_unix_s", FieldUnit::kUnixSeconds, "when it happened first", &PastEvent::at),
    field::text(
        "kind",
        "`peer_up`, `peer_down`, `handshake_failed`, `path_up`, `path_silent`, `path_gone`, "
        "`path_duty`, "
        "`cap_reached`, `new_period`, `address_changed`, `forged_ack`, `inner_mtu`, `peer_in_use`, "
        "`peer_replaced`, `portal` (a captive portal), `direct`, `routed`",
        &PastEvent::kind),
    field::text("peer", "name of the peer; empty: of none", &PastEvent::peer),
    field::text("path", "name of the path; empty: of none", &PastEvent::path),
    field::text("text", "one line in plain words", &PastEvent::text),
    field::gauge("last_unix_s", FieldUnit::kUnixSeconds, "when it happened last", &PastEvent::last),
    field::gauge("count", FieldUnit::kNone, "how often, with few other events between",
                 &PastEvent::count));

/// Figures that show a mistake in a configuration while they grow, as they were at one time.
struct RefusedCounts {
  double at = 0;
  uint64_t foreignSource = 0, betweenPeers = 0, wrongPin = 0, forbidden = 0, sendErrors = 0;
};
template <>
inline constexpr auto kFieldsOf<RefusedCounts> = field::table<RefusedCounts>(
    field::gauge("at_unix_s", FieldUnit::kUnixSeconds, "when they were so", &RefusedCounts::at),
    field::counter("foreign_source", FieldUnit::kPackets, "of `drops`",
                   &RefusedCounts::foreignSource),
    field::counter("between_peers", FieldUnit::kPackets, "of `drops`",
                   &RefusedCounts::betweenPeers),
    field::counter("handshake_decrypt_failed", FieldUnit::kPackets, "of `drops`",
                   &RefusedCounts::wrongPin),
    field::counter("ended_forbidden", FieldUnit::kNone, "of `streams`", &RefusedCounts::forbidden),
    field::counter("socket_send_failed", FieldUnit::kPackets, "of `host_drops`",
                   &RefusedCounts::sendErrors));

class History {
 public:
  static constexpr Duration kStep = 10s;
  static constexpr size_t kSteps = 360;  ///< of each path and each peer: one hour
  /// Most paths and peers that are followed; nothing is kept of further ones. They take about 10 MB
  /// at most.
  static constexpr size_t kMostPaths = 128;
  static constexpr size_t kMostPeers = 128;
  static constexpr size_t kMostEvents = 512;  ///< then the oldest one is dropped
  static constexpr size_t kRecent = 60;       ///< steps of RefusedCounts: ten minutes

  struct Path {
    std::string peer;
    std::string name;  ///< SubflowStatus::path
    PathStep total;    ///< what its subflows had counted at the last step
    Ring<PathStep> steps;
    uint64_t bytes = 0;  ///< sent and received in `steps`
  };
  struct Peer {
    std::string name;
    PeerStep total;
    Ring<PeerStep> steps;
  };

  /// Ends a step of a peer and of its paths. `wall`: seconds since 1970.
  void add(const PeerStatus& peer, int64_t wall);
  /// `wall`: seconds since 1970. Rekeys are not recorded. Of unknown peers only the last event is
  /// kept, so that they cannot push out other events.
  void add(const Event& event, double wall);
  /// Records something that the gateway saw of its host. `kind`: as PastEvent::kind; `path`: the
  /// uplink's name.
  void add(const char* kind, const std::string& path, const std::string& text, double wall);
  /// Ends a step of these figures.
  void add(const RefusedCounts& now);
  /// Forgets their steps, because another configuration refuses from now on. `now`: its first step.
  void beginAgain(const RefusedCounts& now);

  const std::vector<Path>& paths() const { return paths_; }
  const std::vector<Peer>& peers() const { return peers_; }
  const Ring<PastEvent>& events() const { return events_; }
  /// The last failed handshake of an initiator that is not one of the peers; its kind is empty when
  /// there was none.
  const PastEvent& stranger() const { return stranger_; }
  /// The figures as they were kRecent steps ago, or at beginAgain() or the first step if that was
  /// since.
  RefusedCounts formerlyRefused() const;
  /// nullptr: there is none.
  const Path* path(std::string_view peer, std::string_view name) const;
  const Peer* peer(std::string_view name) const;
  /// How often a step of a path or a peer was not kept because there was no room.
  uint64_t untold() const { return untold_; }

 private:
  void push(PastEvent event);
  Path* takePath(const std::string& peer, const std::string& name, int64_t wall);
  Peer* takePeer(const std::string& name, int64_t wall);

  std::vector<Path> paths_;
  std::vector<Peer> peers_;
  Ring<PastEvent> events_;
  Ring<RefusedCounts> refused_;
  PastEvent stranger_;
  uint64_t untold_ = 0;
};

/// The text for PastEvent::kind: "path_silent" for Event::Kind::kSubflowSuspect, and so on.
const char* eventName(Event::Kind kind);

}  // namespace braid
