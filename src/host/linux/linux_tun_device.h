#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "host/linux/loop.h"
#include "host/system.h"
#include "host/tun_device.h"
#include "inet/segmentation.h"

namespace braid {

/// The header before each packet that is read or written (virtio 1.2 section 5.1.6; in the tun
/// driver's form of it, in host byte order). <linux/virtio_net.h> cannot be included in C++.
struct VirtioHeader {
  static constexpr uint8_t kNeedsChecksum = 1;
  static constexpr uint8_t kNoSegments = 0, kTcpV4 = 1, kTcpV6 = 4, kUdp = 5;

  uint8_t flags = 0;
  uint8_t segmentType = kNoSegments;
  uint16_t headers = 0;         ///< bytes before the payload
  uint16_t segmentSize = 0;     ///< payload of a segment
  uint16_t checksumStart = 0;   ///< offset of the first byte that the checksum covers
  uint16_t checksumOffset = 0;  ///< offset of the checksum field from there
};
static_assert(sizeof(VirtioHeader) == 10);

/// The reading part of a LinuxTunDevice. Reads the queues in turns.
class TunReader {
 public:
  /// `fds`: descriptors of the device's queues; they must stay open. `hasHeader`: each packet is
  /// preceded by a VirtioHeader.
  TunReader(const std::vector<int>& fds, TunDevice::Kind kind, bool hasHeader, PacketPool& pool);

  /// From now on a queue that was found empty is not read again until setReady() is called for it.
  void setWatched() { isWatched_ = true; }
  void setReady(size_t queue) { queues_[queue].isReady = true; }
  /// Implements TunDevice::read().
  size_t read(size_t limit, DeviceCounters& counters, const TunDevice::Sink& sink);
  /// Whether the device was deleted.
  bool gone() const { return gone_; }

 private:
  static constexpr size_t kEthernetHeader = 14;
  /// The longest IP packet without jumbograms, plus an Ethernet header and 4 bytes more.
  static constexpr size_t kLongest = 65535 + kEthernetHeader + 4;

  struct Queue {
    int fd;
    bool isReady = true;  ///< may have something to read
  };
  /// kShare: reads of one queue before the next one's turn. kMostReads: reads of all queues in one
  /// call of read(). They count system calls, not packets, because a system call costs about the
  /// same whether it returns one packet or 45.
  static constexpr size_t kShare = 16, kMostReads = 64;

  Queue* nextReady();
  size_t readSome(const Queue& queue, DeviceCounters& counters, const TunDevice::Sink& sink);
  ssize_t readRaw(const Queue& queue, VirtioHeader& header, ByteSpan room, ByteSpan spill,
                  DeviceCounters& counters);
  std::optional<PacketSegmenter> segmentsOf(const VirtioHeader& header, ByteView packet) const;
  size_t cut(PacketSegmenter segments, Packet first, DeviceCounters& counters,
             const TunDevice::Sink& sink);

  std::vector<Queue> queues_;
  size_t last_ = 0;  ///< the queue that was read last
  bool isWatched_ = false;
  TunDevice::Kind kind_;
  bool hasHeader_;
  bool gone_ = false;
  PacketPool& pool_;
  std::unique_ptr<uint8_t[]> spill_;  ///< the part of a read that does not fit a packet buffer
};

/// The writing part of a LinuxTunDevice.
class TunWriter {
 public:
  /// `fds`: descriptors of the device's queues; they must stay open. `linkHeader`: bytes before the
  /// IP header. `hasHeader`: each packet is preceded by a VirtioHeader. `takesUdp`: one packet may
  /// stand for several UDP datagrams.
  TunWriter(std::vector<int> fds, size_t linkHeader, bool hasHeader, bool takesUdp);

  /// Implement TunDevice::write() and flush().
  void write(Packet packet, DeviceCounters& counters);
  void flush(DeviceCounters& counters);

 private:
  /// Packets of one flow that will be written together.
  struct OpenRun {
    explicit OpenRun(size_t linkHeader) : run(linkHeader) {}
    PacketRun run;
    uint32_t number = 0;  ///< runNumber() of the flow
    int fd = -1;
    std::array<Packet, PacketRun::kMost> packets;
  };
  /// Flows whose packets are collected at the same time. Several are needed because the far
  /// gateway's DRR scheduler sends packets of many flows in turns.
  static constexpr size_t kRuns = 32;

  OpenRun& runOf(uint32_t number);
  bool writeAlone(const Packet& packet, int fd, DeviceCounters& counters);
  void writeRun(OpenRun& open, DeviceCounters& counters);
  void writeEach(const OpenRun& open, bool mayTryAgain, DeviceCounters& counters);
  bool& isRefused(const PacketRun& run) { return refused_[static_cast<size_t>(run.kind())]; }
  /// The descriptor to which to write the packets of a flow, by the flow's number. The kernel then
  /// puts packets of the opposite direction into the same queue. The first queue is for packets
  /// without a number, pings among them, so that a flood of datagrams does not delay them.
  int fdOf(std::optional<uint32_t> number) const {
    return fds_[number && fds_.size() > 1 ? 1 + *number % (fds_.size() - 1) : 0];
  }

  std::vector<int> fds_;
  bool hasHeader_;
  size_t linkHeader_;
  /// kRuns runs, or none without VirtioHeaders. A flow's run is in one of two places that its
  /// number selects.
  std::vector<OpenRun> runs_;
  std::vector<OpenRun*> begun_;  ///< the runs that have packets, in the order in which they began
  /// The device has refused a run of these packets, and taken the packets one by one.
  std::array<bool, static_cast<size_t>(PacketRun::Kind::kCount)> refused_{};
};

/// A device of the kernel's tun driver, without the packet information header. The device
/// disappears with this object, unless the administrator had made it persistent.
///
/// With offloads each packet is preceded by a header (virtio 1.2 section 5.1.6). A read may then
/// return a TCP packet of up to 64 KB, which is cut here (PacketSegmenter), and consecutive TCP
/// segments are written as one packet (PacketRun). From Linux 6.2 on this applies to UDP datagrams,
/// too. Without offloads, or where the kernel refuses them, each packet is one read or write.
///
/// With several queues, the kernel puts a packet into the queue to which the opposite direction of
/// its flow was last written, or else into one selected by the flow's hash. Queues are read in
/// turns, so that a flood fills only its own queue and does not delay or drop packets in others.
class LinuxTunDevice final : public TunDevice {
 public:
  /// The length of each kernel queue in packets, which holds packets while the daemon is busy.
  /// Packets that do not fit are dropped without any AQM, so these queues are for short bursts
  /// only; the managed queues are in tunnel/queue/packet_queue.h. When a queue is full, each packet
  /// waits for the whole queue. Chosen: 9 ms of the smallest packets on a core that carries 110,000
  /// per second.
  static constexpr int kKernelQueue = 1024;

  /// Creates the device, or takes over a persistent one without owner, which keeps its single
  /// queue. Throws SystemError.
  explicit LinuxTunDevice(const DeviceOptions& options);

  size_t queues() const { return fds_.size(); }
  /// The descriptor of the first queue.
  int fd() const { return fds_[0].get(); }
  /// Calls `onReadable` on the loop while there is something to read.
  void watch(Loop& loop, IoWatcher::Callback onReadable);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override { writer_->write(std::move(packet), counters_); }
  void flush() override { writer_->flush(counters_); }

 private:
  bool create(int flags, unsigned queues);
  void lengthenQueues();
  std::vector<int> rawFds() const;

  std::vector<UniqueFd> fds_;  ///< one for each queue
  IoWatcher::Callback onReadable_;
  std::vector<std::unique_ptr<IoWatcher>> watchers_;  ///< one for each queue
  Kind kind_;
  bool hasHeader_ = false;  ///< each packet has a VirtioHeader before it
  std::optional<TunReader> reader_;
  std::optional<TunWriter> writer_;
};

}  // namespace braid
