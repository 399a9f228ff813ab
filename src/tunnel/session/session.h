#pragma once

// One keyed association with a peer: its keys, subflows and flows. What it sends is in session_send.cc, how
// it protects what it has sent in session_protect.cc, what it receives in session_receive.cc, and what its
// subflows are for in session_preference.cc.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/ring.h"
#include "coding/block_decoder.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/flow_queues.h"
#include "tunnel/lane/resequencer.h"
#include "tunnel/protect/protection_block.h"
#include "tunnel/protect/protection_marks.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/event.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_status.h"
#include "tunnel/subflow/datagram.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow_set.h"
#include "tunnel/wire/frame_traits.h"
#include "tunnel/wire/key_schedule.h"

namespace braid {

/// What a session needs from the tunnel that owns it.
class SessionOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Packet packet) = 0;
  virtual void onEvent(Event event) = 0;
  virtual void onDrop(Drop cause, uint64_t count) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(ByteView packet) = 0;
};

class Session final : public SubflowOwner {
 public:
  /// `options`, `pool` and `owner` must outlive it.
  Session(const SessionSecrets& secrets, KeySchedule::Role role, const SessionOptions& options,
          PacketPool& pool, SessionOwner& owner, Random random, Time now);
  ~Session() override;

  uint32_t id() const { return id_; }
  const Pin& pin() const { return pin_; }
  KeySchedule::Role role() const { return role_; }
  Time start() const { return start_; }
  /// When a datagram of the peer was last opened; the session's start before that.
  Time lastHeard() const { return lastHeard_; }
  /// A datagram of the peer has been opened: it has the keys.
  bool confirmed() const { return confirmed_; }
  /// The peer said CLOSE, or the keys are used up.
  bool over() const { return over_; }
  bool anyUsable() const { return subflows_.anyUsable(); }
  /// Since when no subflow is usable; kNever when one is.
  Time unusableSince() const { return unusableSince_; }
  /// Largest inner packet that serves the paths in use.
  size_t innerMtu() const { return innerMtu_; }
  void setTunables();

  // ---- subflows (initiator)

  /// Starts or reopens the subflow of this name. False when the numbers are used up.
  bool openSubflow(const std::string& name, const std::string& uplink, const Route& route, Time now);
  void closeSubflow(const std::string& name, Time now);
  /// How this side and the peer are to use it; `ceiling` limits this side. The peer is told when it is not by
  /// default, or was not.
  void setPreference(const std::string& name, const PathPreference& own, const PathPreference& peers,
                     std::shared_ptr<Pacer> ceiling, Time now);
  void setKeepalive(Duration keepalive) { keepalive_ = keepalive; }

  // ---- what arrives

  /// Opens the datagram and acts on it. nullopt when it was used, else why not.
  std::optional<Drop> onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn, Packet datagram,
                                 Time now);
  /// Queues an inner packet. nullopt when it was taken.
  std::optional<Drop> onInnerPacket(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                    Time now, PacketHint hint = {});
  /// Packets of this inner flow wait here, or were sent and are not known to have come out at the other end.
  bool isCarrying(const FlowKey& key) const { return flows_.isCarrying(key); }
  void onSendError(const Route& route, Time now);
  void onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);

  // ---- what leaves

  bool pollDatagram(Datagram& out, Time now);
  /// Says CLOSE on every usable subflow and sends nothing more.
  void close();
  Time nextDeadline(Time now) const;
  void fill(SessionStatus& status, Time now) const;
  /// What its queues threw away so far. The destructor reports it to the owner.
  DropCounts drops() const;

  // SubflowOwner
  void onControlFate(Subflow& subflow, uint64_t pn, bool delivered) override;
  void onPacketLost(const Subflow& subflow, uint64_t pn, double recentRate, Time now) override;
  void onStateChange(Subflow& subflow) override;
  void onAddressChange(Subflow& subflow) override;

 private:
  // session_receive.cc
  Subflow* acceptSubflow(uint8_t id, const Route& from, Time now);
  void onFrames(Subflow& subflow, Packet datagram, uint64_t pn, Ecn ecn, size_t size, const Route& from,
                Time now, bool& malformed);
  void onFrame(Subflow& subflow, const WireFrame& frame, const Route& from, Time now);
  bool onData(const DataFrame& frame, Packet packet, Time now);
  void onSkip(const SkipFrame& skip, Time now);
  void onParity(const ParityFrame& frame, uint8_t on, uint64_t pn, Time now);
  void onParityTail(const ParityTailFrame& frame);
  void onRecovered(const RecoveredFrame& frame, Time now);
  void onPreference(const SubflowPreferenceFrame& frame);
  std::shared_ptr<Pacer> ceilingOf(const PathPreference& preference);
  void takeRestored(Time now);
  void tellRecovered(uint8_t subflow, uint64_t pn);
  void deliverInOrder();

  // session_send.cc
  bool pollUrgent(Datagram& out, Time now);
  bool pollControl(Datagram& out, Time now);
  bool pollRepair(Datagram& out, Time now);
  /// What became of new data.
  enum class Offer : uint8_t {
    kSent,
    kNothing,  ///< the paths that are open have none to send: what is left waits for a better one
    kNoPath,   ///< some is left, and no path is open
    kLater,    ///< some is left; no buffer, or no path for protection
  };
  bool pollNewData(Datagram& out, Time now);
  Offer offerNewData(Datagram& out, Time now);
  bool pollMtuProbe(Datagram& out, Time now);
  bool sendData(Subflow& subflow, Datagram& out, Time now);
  void lookAtPaths(Time now);
  std::optional<size_t> choosePath(Flow& flow, const Packet& packet, Time now);
  bool pollClose(Datagram& out, Time now);
  /// A lost packet that can be sent now, and the path for it; nullptr when there is none.
  const Datum* pickRepair(Subflow*& path, Time now);
  Subflow* pathForRepair(const Datum& datum, Time now);
  Subflow* ackCarrier(Subflow& of);
  bool mayRepair(const Datum& datum, const Subflow& subflow) const;
  const Datum* firstReady(Time now);
  const Datum* nextReady(const Datum* datum, Time now);
  void addRecovered(DatagramBuilder& build);
  /// `chosen`: the packet that flows_ shows is to go on this path.
  void addData(DatagramBuilder& build, Time now, bool chosen = false);
  void addRepair(DatagramBuilder& build, const Datum* datum, Time now);
  void noteData(const DatagramBuilder& build, const Datum& datum, Time now);

  // session_protect.cc
  void setPolicies();
  /// After a reload a flow may be of a class that is no more.
  RecoveryPolicy& policyOf(uint8_t recoveryClass) const {
    return *policies_[recoveryClass < policies_.size() ? recoveryClass : 0];
  }
  bool pollTail(Datagram& out, Time now);
  bool pollDuplicate(Datagram& out, Time now);
  bool pollProtection(Datagram& out, Time now);
  bool pollTurn(Flow& flow, Datagram& out, Time now);
  bool protect(uint8_t recoveryClass, Flow* flow, Datagram& out, Time now);
  RecoveryView look(uint8_t recoveryClass, Flow* flow, Time now);
  void countUnacked(uint8_t recoveryClass, const Flow* flow);
  void askAgain(const RecoveryPolicy& policy, Time now);
  bool isWanted(const ProtectionBlock& block);
  bool sendCopy(uint8_t recoveryClass, Flow* flow, const Protection& protection, Datagram& out, Time now);
  bool finishCopy(DatagramBuilder& build, Subflow& of, uint64_t pn, Datagram& out, Time now);
  bool startBlock(uint8_t recoveryClass, Flow* flow, const Protection& protection, Time now);
  void gather(ProtectionBlock& block, uint8_t recoveryClass, const Flow* flow, const Protection& protection);
  bool addSymbol(ProtectionBlock& block, Subflow& of, const Subflow& on, uint64_t pn);
  bool sendParity(ProtectionBlock& block, Subflow& on, Datagram& out, Time now);
  ProtectionBlock* blockOf(uint8_t recoveryClass, const Flow* flow);
  void onNewData(const Datum* datum);
  void duplicate(const Datum* datum);
  void trace(const TraceEvent& event);

  // session_preference.cc
  const SubflowPreferenceFrame* wishFor(const Subflow& subflow) const;
  void tellPreference(const Subflow& subflow);
  void updateDuties(Time now);
  bool openOverflow(Time now);
  void onDrained(Time now);
  void setSaturated(Time now);

  // session.cc
  void refresh(Time now);
  void updateInnerMtu();
  void clearQueues(Time now);
  void event(Event event);
  void event(Event::Kind kind, const Subflow& subflow, const char* what);

  uint32_t id_;
  Pin pin_;
  KeySchedule::Role role_;
  const SessionOptions& options_;
  PacketPool& pool_;
  SessionOwner& owner_;
  Random random_;
  KeySchedule keys_;
  DatagramSealer sealer_;
  DataLedger ledger_;
  FlowQueues flows_;
  Resequencer resequencer_;
  std::vector<DuplicateFilter> datagramFilters_;
  std::unique_ptr<PathScheduler> scheduler_;
  std::string schedulerName_;

  std::vector<std::unique_ptr<RecoveryPolicy>> policies_;  ///< of flows in no class; then of each class
  std::vector<ProtectionMarks> marks_;                     ///< of subflows_, by position
  std::vector<RecoveryPath> recoveryPaths_;                ///< scratch of look()
  /// Blocks whose parities are not all sent. Ours: a short flow has one of its own beside the idle one.
  static constexpr size_t kOpenBlocks = 8;
  std::vector<ProtectionBlock> blocks_;
  uint16_t nextBlock_ = 0;
  Time repairAt_ = kNever;  ///< when a repair stops waiting for the peer's word on its protection
  uint64_t noneReady_ =
      UINT64_MAX;            ///< DataLedger::repairChanges() when no repair was ready before repairAt_
  Time protectAt_ = kNever;  ///< when to ask a policy again
  ParityTail tail_;
  Ring<const Datum*> duplicates_;  ///< to be sent a second time by a duplicating policy
  bool lastEnded_ = false;         ///< the flow that sent last has ended and takes no turn of its own
  BlockDecoder decoder_;
  static constexpr size_t kMaxRecovered = 64;
  std::vector<RecoveredFrame> recovered_;  ///< to be told

  ControllerGroup controllers_;  ///< of all subflows
  SubflowSet subflows_;
  std::vector<SubflowPreferenceFrame> wishes_;  ///< initiator: what the peer is told; sequence 0: nothing
  std::map<uint8_t, std::shared_ptr<Pacer>> ceilings_;  ///< responder: by uplink
  bool dutiesDue_ = false;                              ///< a subflow came, went, or is for something else
  bool meteredWait_ = false;                            ///< metered subflows are there, and better ones
  Saturation saturation_;                               ///< of those better ones
  std::vector<PathView> views_;                         ///< of lookAtPaths()
  std::vector<PathView> fitting_;                       ///< scratch of choosePath()
  Time patienceEnd_ = kNever;  ///< when to ask the scheduler again for a flow that waits for a better path
  size_t turn_ = 0;            ///< whose turn it is to send what is urgent

  ControlFrames controls_;
  Duration keepalive_ = 10s;
  Time start_;
  Time lastHeard_;
  Time unusableSince_;
  size_t innerMtu_;
  bool confirmed_ = false;
  bool over_ = false;
  bool closing_ = false;
  size_t closesLeft_ = 0;

  struct {
    uint64_t sentPackets = 0, sentBytes = 0, receivedPackets = 0, receivedBytes = 0, repaired = 0;
    uint64_t blocks = 0, parities = 0;
  } counts_;
};

}  // namespace braid
