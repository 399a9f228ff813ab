#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/control/stream_figures.h"
#include "gateway/log.h"
#include "gateway/stream_gate.h"
#include "gateway/stream_pump.h"
#include "host/host.h"
#include "tunnel/stream_lanes.h"

namespace braid {

/// The TCP connections at the ends of this gateway's streams: takes over those of the hosts here, opens those to the hosts
/// here, and keeps each with its stream.
class Streams : private StreamObserver {
 public:
  /// Connections accepted in one turn of the loop. Ours: others have to wait no longer than for a millisecond.
  static constexpr size_t kAccepts = 64;
  /// Connections to hosts here that are opened in one turn, those of the peers one by one; others wait for the next. Ours:
  /// at 50 us each, packets wait no longer than for a millisecond.
  static constexpr size_t kConnects = 16;
  /// Until a host here must have answered a SYN. Ours: five SYNs of Linux, the last of them 15 s after the first.
  static constexpr Duration kConnectTime = 20s;
  /// Connections that were taken over and find no room wait for it so long, in the system's queue or here, then they are
  /// reset. Ours: those of a burst have made room by then, on a busy machine, too.
  static constexpr Duration kPatience = 5s;
  /// Of those, so many here for which a peer has no room, because all of them are looked at in each turn. Further ones stay
  /// in the system's queue until half of these have left, and behind them those for other peers; new connections are packets
  /// meanwhile. Ours.
  static constexpr size_t kMostWaiting = 512;
  /// They are looked at again after so long, if nothing happens before. Ours.
  static constexpr Duration kLookAgain = 10ms;
  /// Until connections are accepted again after the system had no descriptor or no memory for one. Ours.
  static constexpr Duration kPause = 100ms;

  /// `device`: name of the gateway's interface. All others must outlive this. Throws SystemError.
  Streams(Host& host, const NetworkMonitor& monitor, const std::string& device, StreamLanes& lanes,
          LogLimiter& log);
  ~Streams() override;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// `index`: of the gateway's interface.
  void configure(const Config& config, int index, Time now);
  /// Connections at once under this configuration: fewer where the host allows no more.
  size_t most(const Config& config) const;
  /// What the peers can, or the host's interfaces and default routes, may have changed.
  void onChange(Time now);
  /// Does what is due. True: there is more; call again at once.
  bool turn(Time now);
  /// Whether the last turn did anything with the lanes, so that the tunnel may have datagrams to send.
  bool hasActed() const { return acted_; }
  Time deadline() const;
  /// Ends every connection with a reset.
  void stop();

  StreamFigures figures() const;

 private:
  struct Attempt {
    StreamHandle stream;
    Time until;
  };

  struct Waiting {
    StreamHost::Accepted accepted;
    Time until;
  };

  void onAcceptable() override;
  void onReady(uint64_t tag, Ready ready) override;

  void take(StreamHost::Accepted&& accepted, Time now);
  bool open(StreamHost::Accepted& accepted, Time now);
  void takeWaiting(Time now);
  void acceptAgain(Time now);
  /// False: openings are left for the next turn.
  bool takeEvents(Time now);
  void onEvent(const StreamEvent& event, Time now);
  void connect(StreamHandle stream, Time now);
  void refuse(StreamHandle stream, StreamCause cause, Time now);
  void add(StreamHandle stream, std::unique_ptr<StreamSocket> socket, const std::optional<StreamPair>& taken);
  StreamPump* find(StreamHandle stream);
  void list(StreamPump& pump);
  void move(StreamPump& pump, Time now);
  void drop(StreamHandle stream);
  void expire(Time now);
  void pause(Time until);
  size_t used() const { return open_ + waiting_.size(); }
  bool hasRoom() const { return used() < bound_; }
  bool mayAccept() const { return hasRoom() && waiting_.size() < kMostWaiting; }
  bool mayAcceptAgain() const { return hasRoom() && waiting_.size() <= kMostWaiting / 2; }
  void watchRoom(Time now);
  void noteRoom(const Address& destination);

  const Clock& clock_;
  const NetworkMonitor& monitor_;
  StreamLanes& lanes_;
  std::string device_;
  std::unique_ptr<StreamHost> host_;
  StreamGate gate_;
  std::vector<std::unique_ptr<StreamPump>> pumps_;  ///< by StreamHandle::place
  std::vector<StreamHandle> ready_, moving_;        ///< those that have something to do
  std::deque<Attempt> attempts_;                    ///< connections being opened, oldest first
  std::vector<Waiting> waiting_;  ///< taken over, but their peers have no room for them now; oldest first
  size_t open_ = 0, most_ = 0;
  size_t connects_ = 0;  ///< in this turn
  size_t bound_ = 0;     ///< at most `most_`; less when there were no more descriptors
  bool clientsSource_ = true;
  bool full_ = false;
  bool isPeerFull_ = false;  ///< some peer: the gate is to be looked at
  bool acted_ = false;
  Time acceptAgain_ = kNever;  ///< kNever: connections are accepted
  Time lookAgain_ = kNever;    ///< at those that wait; kNever: none does
  /// Then those that wait to be accepted are turned away; kNever: none waits for room. The past: until all have been.
  Time roomBy_ = kNever;
  StreamFigures figures_;
};

}  // namespace braid
