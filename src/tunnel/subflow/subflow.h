#pragma once

// One subflow: a packet-number space on one route, with its own RTT, loss detection, rate control and MTU. It
// decides when its path is in doubt and tells the data ledger what became of the data it carried.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/timer_table.h"
#include "scheduler/rate/controller_group.h"
#include "scheduler/recovery/loss_estimate.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/subflow/ack_sender.h"
#include "tunnel/subflow/delivery_rate.h"
#include "tunnel/subflow/ecn_validator.h"
#include "tunnel/subflow/flight.h"
#include "tunnel/subflow/gate.h"
#include "tunnel/subflow/mtu_discovery.h"
#include "tunnel/subflow/peer_route.h"
#include "tunnel/subflow/protection_tally.h"
#include "tunnel/subflow/subflow_events.h"
#include "tunnel/subflow/subflow_options.h"
#include "tunnel/subflow/subflow_state.h"
#include "tunnel/subflow/subflow_status.h"
#include "tunnel/wire/replay_window.h"

namespace braid {

class Subflow {
 public:
  /// SubflowState by name, in its order.
  enum class State : uint8_t { kValidating, kActive, kSuspect, kClosed };
  /// Silence shorter than this is jitter, not a reason to probe.
  static constexpr Duration kQuiet = 10ms;

  /// `trusted`: our configuration names the remote address.
  Subflow(uint8_t id, std::string uplink, const Route& route, bool trusted, const SubflowOptions& options,
          SubflowEvents& events, DataLedger& ledger, ControllerGroup& group, Random& random, Time now);
  Subflow(const Subflow&) = delete;
  Subflow& operator=(const Subflow&) = delete;

  uint8_t id() const { return id_; }
  State state() const { return static_cast<State>(state_.index()); }
  const Route& route() const { return peerRoute_.route(); }
  const std::string& uplink() const { return uplink_; }
  bool usable() const { return state() == State::kActive; }
  /// When a datagram may leave.
  const Gate& gate() const { return gate_; }
  Gate& gate() { return gate_; }
  bool takesData() const { return gate_.takesData(); }
  const PathPreference& preference() const { return preference_; }
  void setPreference(const PathPreference& preference) { preference_ = preference; }
  PathDuty duty() const { return gate_.duty(); }
  void setDuty(PathDuty duty, Time now) { gate_.setDuty(duty, now); }
  void setCeiling(std::shared_ptr<Pacer> ceiling) { gate_.setCeiling(std::move(ceiling)); }
  const RttEstimator& rtt() const { return rtt_; }
  /// Largest datagram that the path carries, in bytes of UDP payload.
  size_t mtu() const { return mtu_.current(); }
  bool searchesMtu() const { return mtu_.searching(); }
  Duration pto() const;

  // ---- what arrives

  bool isReplay(uint64_t pn) const { return !replay_.check(pn); }
  uint64_t expectedPacketNumber() const { return acks_.expected(); }
  /// A datagram with a new packet number was opened and all its frames understood.
  void onPacket(uint64_t pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from, Time now);
  /// One was opened and not understood: it is not acknowledged, and must not take effect again.
  void onMalformed(uint64_t pn) { replay_.commit(pn); }
  /// `samePath`: the ACK came over this subflow, so that its delay says something of the path.
  void onAck(const AckFrame& ack, bool samePath, Time now);
  void onPathChallenge(const PathToken& token, const Route& from);
  void onPathResponse(const PathToken& token, Time now);
  /// The peer wants it used, or not.
  void onPeerStatus(const SubflowStatusFrame& status, Time now);
  /// Or how. False when that is no news.
  bool onPeerPreference(const SubflowPreferenceFrame& frame);
  void onTooBig(size_t size, Time now) { mtu_.onTooBig(size, now); }
  /// The kernel refused to send.
  void onSendError(Time now);
  /// Its uplink is gone: nothing more is sent until open().
  void close(Time now);
  /// Nobody waits any more for the data that it carried.
  void giveUpData(Drop cause) { flight_.giveUpData(cause); }
  /// It has a (new) route; `trusted` as in the constructor.
  void open(const Route& route, Time now);

  // ---- what leaves

  /// A PING must go now, whatever the window says.
  bool mustSend() const { return pingDue_ && state() != State::kClosed && canNumber(); }
  /// A challenge or response must.
  bool hasPathFrame(Time now) const;
  /// When something of its own must be sent, or a timer is due.
  Time nextDeadline() const;
  void onTimer(Time now);
  /// A challenge or response to send now, on a route of its own; nullopt when none is due.
  using PathFrame = PeerRoute::Frame;
  std::optional<PathFrame> takePathFrame(Time now);
  AckSender& acks() { return acks_; }
  const AckSender& acks() const { return acks_; }
  /// Size of the MTU probe to send now; 0: none.
  size_t mtuProbe() const;
  void onMtuProbeSent(size_t size, Time now) {
    mtu_.onProbeSent(size, std::min<Duration>(pto() * 2, MtuDiscovery::kMaxProbeTime), now);
  }
  void requestPing() { pingDue_ = true; }
  Time lastSentAt() const { return lastSentAt_; }

  bool isOpen(Time now) const { return gate_.isOpen(now); }
  bool isOpenForRepair(Time now) const { return gate_.isOpenForRepair(now); }
  Time opensAt(bool overflow = false) const { return gate_.opensAt(overflow); }
  Time opensForRepairAt() const { return gate_.opensForRepairAt(); }
  /// `overflow` as in Gate::takesData().
  PathView view(Time now, bool overflow = false) const;
  /// Until a datagram sent now is at the peer: half the RTT, and two round trips more when it is lost. Ours.
  Duration expectedDelay() const;

  uint64_t nextPacketNumber() const { return sent().next(); }
  bool canNumber() const { return !sent().full(); }
  /// What each packet number carried and what became of it.
  const SentPackets& sent() const { return flight_.packets(); }
  /// Takes the next packet number for a datagram that leaves now. `tracked`: something in it asks for an ACK;
  /// then the caller fills in the data.
  SentPacket& onSent(size_t bytes, bool tracked, Time now);
  /// Decides on the ECN field of that datagram, which takes the subflow's own route.
  Ecn codepoint(uint64_t pn, SentPacket& packet, Time now);
  /// Whether the datagram arrives is in doubt: its data is to go elsewhere as soon as it can.
  void moveData(SentPacket& packet, Time now) { flight_.moveData(packet, now); }
  /// Bytes of inner packets that this subflow carries again.
  void countRepair(size_t bytes) { counts_.retransmittedBytes += bytes; }
  /// The sender had nothing more to send while this subflow was open.
  void setAppLimited() { rate_.setAppLimited(flight_.bytes()); }

  // ---- what protection reads and counts (tunnel/protect)

  /// How the path loses packets.
  const LossEstimate& losses() const { return lossEstimate_; }
  /// Bytes of datagrams in flight.
  uint64_t inFlight() const { return flight_.bytes(); }
  /// When an ACK last told something new of the subflow, or, if later, when it began to send after a pause.
  Time progressAt() const { return flight_.progressAt(); }
  /// Whether data of the packet is not known to be delivered or given up.
  bool isDataMissing(uint64_t pn) const { return flight_.isDataMissing(pn); }
  /// The peer has decoded the data of the packet. False when that is no news.
  bool onRecovered(uint64_t pn);
  ProtectionTally& tally() { return tally_; }

  SubflowStatus status(Time now) const;

 private:
  void noteLoss(uint64_t pn, SentPacket& packet);
  /// What may have to be done at some time, in the order of doing it.
  enum class Timer : uint8_t {
    kLoss,         ///< a packet in flight counts as lost
    kPto,          ///< probe timeout: the path may have fallen silent
    kSuppression,  ///< what is in flight on a suppressed path should have been acknowledged
    kProbe,        ///< of a suspect path
    kMtu,
    // Those that only send something, when the session polls; nothing leaves while no number is free.
    kPath,  ///< a challenge; or to give the proof of a route up
    kAck,
    kUrgent,  ///< a PING or a response to a challenge: at once
    kCount,
  };
  /// When the timer is due; kNever while it does not run.
  Time deadline(Timer timer) const;
  void onExpired(Timer timer, Time now);
  void enter(SubflowState next, Time now);
  void tell(SubflowEvent::Kind kind, uint64_t pn = 0, double lossRate = 0) {
    events_.push({kind, id_, pn, lossRate});
  }
  /// It has a route, and the peer has not answered there yet.
  bool isUnproven() const;
  void acknowledge(uint64_t pn, SentPacket& packet, AckSample& sample, Time now);
  void detectLosses(Time now);
  Time ptoDeadline() const;
  void onPto(Time now);
  void probe(Time now);
  const char* stateName(Time now) const;
  void moveAllData(Time now);
  Time suppressionDeadline() const;
  void changeRoute(const Route& route, Time now);

  uint8_t id_;
  std::string uplink_;
  PeerRoute peerRoute_;
  SubflowState state_;
  /// The peer's last word; an older one that arrives late is ignored.
  struct {
    uint64_t statusSequence = 0, preferenceSequence = 0;  ///< the least that is news
    bool refuses = false;                                 ///< the peer does not want the path used
  } peerSaid_;
  PathPreference preference_;
  SubflowEvents& events_;
  DataLedger& ledger_;

  // receiving
  ReplayWindow replay_;
  AckSender acks_;

  // sending
  Flight flight_;
  DeliveryRate rate_;
  RttEstimator rtt_;
  MtuDiscovery mtu_;
  Gate gate_;
  EcnValidator ecn_;
  bool pingDue_ = false;  ///< a PING is to be sent now, whatever the window says
  Time lastSentAt_;
  Time movedSuppressed_ = kNever;  ///< since then suppressed, and its data has been moved

  SendCounts counts_;
  ReceiveCounts received_;

  LossEstimate lossEstimate_;
  ProtectionTally tally_;
  const SubflowOptions& options_;
};

}  // namespace braid
