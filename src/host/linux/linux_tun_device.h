#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host/linux/loop.h"
#include "host/tun_device.h"
#include "host/unique_fd.h"
#include "inet/packet_run.h"

namespace braid {

/// What stands before a packet that is read or written (virtio 1.2 section 5.1.6, the tun driver's form of it: host
/// byte order). <linux/virtio_net.h> is no C++.
struct VirtioHeader {
  static constexpr uint8_t kNeedsChecksum = 1;
  static constexpr uint8_t kNoSegments = 0, kTcpV4 = 1, kTcpV6 = 4, kUdp = 5;

  uint8_t flags = 0;
  uint8_t segmentType = kNoSegments;
  uint16_t headers = 0;         ///< bytes before the payload
  uint16_t segmentSize = 0;     ///< payload of a segment
  uint16_t checksumStart = 0;   ///< what the checksum covers begins there
  uint16_t checksumOffset = 0;  ///< the field, from there
};
static_assert(sizeof(VirtioHeader) == 10);

/// A device of the kernel's tun driver, without packet information header. The device goes when this object goes,
/// unless the administrator made it persistent before.
///
/// With offloads each packet has a header before it (virtio 1.2 section 5.1.6): what is read may be a TCP packet of up
/// to 64 KB, which is cut here (PacketSegmenter), and TCP segments in a row are written as one (PacketRun); the same
/// with UDP datagrams, from Linux 6.2 on. Without them, or where the kernel refuses them, a packet is one read or write.
///
/// With several queues the kernel puts a flow into the one through which the flow's other direction was last written,
/// else into one by its hash. Queues are read in turns: a flood fills its own, and what is in others does not wait for
/// it, nor is it dropped.
class LinuxTunDevice final : public TunDevice {
 public:
  /// Packets that the kernel keeps in each queue while the daemon is busy. What does not fit is dropped where no AQM sees
  /// it, so these queues are for short bursts only, and the managed ones are flow_queue.h. When a queue is full, every
  /// packet in it waits for all of it. Ours: 9 ms of the smallest packets on a core that carries 110,000 in a second.
  static constexpr int kKernelQueue = 1024;

  /// Creates the device or takes over a persistent one without owner, which keeps its one queue. Throws SystemError.
  explicit LinuxTunDevice(const DeviceOptions& options);

  size_t queues() const { return queues_.size(); }
  /// Of the first queue.
  int fd() const { return queues_[0].fd.get(); }
  /// Calls back on the loop while there is something to read.
  void watch(Loop& loop, IoWatcher::Callback onReadable);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override;

 private:
  struct Queue {
    UniqueFd fd;
    std::unique_ptr<IoWatcher> watcher = nullptr;
    bool isReady = true;  ///< may have something to read
  };
  /// Packets that are read from a queue before it is the next one's turn. Ours.
  static constexpr size_t kShare = 64;
  /// Packets of one flow that will be one write.
  struct OpenRun {
    explicit OpenRun(size_t linkHeader) : run(linkHeader) {}
    PacketRun run;
    std::array<Packet, PacketRun::kMost> packets;
  };
  /// Flows whose packets are collected at the same time: the far gateway's fair round gives those of many in turns.
  /// Ours.
  static constexpr size_t kRuns = 32;

  bool create(int flags, unsigned queues);
  void lengthenQueues();
  Queue* nextReady();
  /// Gives the packets of one read to the sink. How many there were, lost ones included; 0: nothing is to be read.
  size_t readSome(const Queue& queue, PacketPool& pool, const Sink& sink);
  ssize_t readRaw(const Queue& queue, VirtioHeader& header, ByteSpan room, ByteSpan spill);
  size_t cut(const VirtioHeader& header, ByteView packet, Packet first, PacketPool& pool, const Sink& sink);
  void give(Packet packet, const Sink& sink);
  void writeAlone(const Packet& packet, size_t slot);
  void writeRun(OpenRun& open);
  /// To write the packets of a flow to: its number modulo kRuns is the slot.
  int fdOf(size_t slot) const { return queues_[slot % queues_.size()].fd.get(); }
  bool isTaken(ssize_t written, size_t packets);

  std::vector<Queue> queues_;
  size_t last_ = 0;  ///< the queue that was read last
  Kind kind_;
  bool hasHeader_ = false;            ///< each packet has a VirtioHeader before it
  std::unique_ptr<uint8_t[]> spill_;  ///< what a read brings beyond a packet buffer
  size_t linkHeader_;
  std::vector<OpenRun> runs_;    ///< kRuns, by the number of the flow; none without headers
  std::vector<OpenRun*> begun_;  ///< those that have packets, in the order of their beginning
};

}  // namespace braid
