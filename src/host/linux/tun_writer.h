#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/packet.h"
#include "host/tun_device.h"
#include "inet/packet_run.h"

namespace braid {

/// The writing half of a LinuxTunDevice: used by one thread at a time.
class TunWriter {
 public:
  /// `fds`: of the device's queues; they must stay open. `linkHeader`: bytes before the IP header. `hasHeader`: each packet
  /// has a VirtioHeader before it; `takesUdp`: one may stand for several of UDP.
  TunWriter(std::vector<int> fds, size_t linkHeader, bool hasHeader, bool takesUdp);

  /// TunDevice::write(), flush(). `spent`: takes the packets that are done with; nullptr: they go back to their pool.
  /// What is kept until flush() needs the same `counters` and `spent`.
  void write(Packet packet, DeviceCounters& counters, std::vector<Packet>* spent = nullptr);
  void flush(DeviceCounters& counters, std::vector<Packet>* spent = nullptr);

 private:
  /// Packets of one flow that will be one write.
  struct OpenRun {
    explicit OpenRun(size_t linkHeader) : run(linkHeader) {}
    PacketRun run;
    uint32_t number = 0;  ///< of the flow
    int fd = -1;
    std::array<Packet, PacketRun::kMost> packets;
  };
  /// Flows whose packets are collected at the same time: the far gateway's fair round gives those of many in turns.
  /// Ours.
  static constexpr size_t kRuns = 32;

  OpenRun& runOf(uint32_t number);
  void writeAlone(Packet packet, int fd, DeviceCounters& counters, std::vector<Packet>* spent);
  void writeRun(OpenRun& open, DeviceCounters& counters, std::vector<Packet>* spent);
  /// To write the packets of a flow to, by its number. The kernel puts what goes the other way into the same queue. The
  /// first queue is for what has no number, pings among it: no flood of datagrams is in their way.
  int fdOf(std::optional<uint32_t> number) const {
    return fds_[number && fds_.size() > 1 ? 1 + *number % (fds_.size() - 1) : 0];
  }

  std::vector<int> fds_;
  bool hasHeader_;
  size_t linkHeader_;
  std::vector<OpenRun> runs_;    ///< kRuns, a flow in one of two places by its number; none without headers
  std::vector<OpenRun*> begun_;  ///< those that have packets, in the order of their beginning
};

}  // namespace braid
