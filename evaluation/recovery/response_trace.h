#pragma once

// The values of CoFUSO's figs. 4 and 5 for one response.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "evaluation/models/network.h"
#include "evaluation/models/raw_flows.h"
#include "tunnel/queue/trace.h"

namespace braid::sim {

/// Finds the first protection packet, in the order of sending, that repaired a loss.
class FirstHit {
 public:
  /// An event at the gateway that sends the response.
  void onSender(const TraceEvent& event);
  /// An event at the gateway that receives it.
  void onReceiver(const TraceEvent& event);
  /// The number of that packet, counted from 1; nullopt when none repaired a loss. A copy repairs a
  /// loss when it arrives and its original does not; a parity, when it is the last that the
  /// receiver needs to restore a lost packet.
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
  std::vector<std::pair<ParityId, PacketId>>
      restored_;  // the parity that arrived last, and the restored packet
  std::set<PacketId> lost_;
};

/// How many more datagrams the windows of all subflows would have allowed beside the data.
struct Chances {
  static constexpr std::array kAfter{20ms, 50ms, 100ms};
  /// Datagrams allowed kAfter[i] after the first transmission of the response's last packet.
  std::array<size_t, kAfter.size()> count{};
};

struct TracedFlow {
  FlowResult result;
  std::optional<size_t> firstHit;
  Chances chances;
};

/// Runs one response in a connection that is started and idle.
TracedFlow traceFlow(Connection& connection, const MessageOptions& message);

}  // namespace braid::sim
