#pragma once

// What CoFUSO's figs. 4 and 5 count of one response.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/message_flow.h"
#include "sim/network.h"
#include "tunnel/lane/trace.h"

namespace braid::sim {

/// Which packet of protection, in the order of sending, was the first to make good a loss.
class FirstHit {
 public:
  /// An event at the gateway that sends the response.
  void onSender(const TraceEvent& event);
  /// An event at the gateway that receives it.
  void onReceiver(const TraceEvent& event);
  /// 1: the first one; nullopt: none did. A copy hits when it arrives and its packet does not, a parity when it is the last
  /// that the receiver needs to restore a packet that was lost.
  std::optional<size_t> number() const;

 private:
  using PacketId = std::pair<uint64_t, uint64_t>;  // subflow, number
  using ParityId = std::pair<uint64_t, uint64_t>;  // block, index
  struct Sent {
    bool isCopy = false;
    PacketId of{}, as{};  // kCopySent
    ParityId parity{};
  };
  std::vector<Sent> sent_;
  std::vector<ParityId> received_;
  std::vector<std::pair<ParityId, PacketId>> restored_;  // the packet, and the parity that came last
  std::set<PacketId> lost_;
};

/// What the windows of all subflows would have let out beside the data.
struct Chances {
  static constexpr std::array kAfter{20ms, 50ms, 100ms};
  /// Datagrams, so long after the last packet of the response left for the first time.
  std::array<size_t, kAfter.size()> count{};
};

struct TracedFlow {
  FlowResult result;
  std::optional<size_t> firstHit;
  Chances chances;
};

/// One response in a connection that is started and idle.
TracedFlow traceFlow(Connection& connection, const MessageOptions& message);

}  // namespace braid::sim
