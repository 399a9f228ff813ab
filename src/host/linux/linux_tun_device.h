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
class LinuxTunDevice final : public TunDevice {
 public:
  /// Creates the device or takes over a persistent one without owner. Throws SystemError.
  explicit LinuxTunDevice(const DeviceOptions& options);

  int fd() const { return fd_.get(); }
  /// Calls back on the loop while there is something to read.
  void watch(Loop& loop, IoWatcher::Callback onReadable);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override;

 private:
  /// Packets of one flow that will be one write.
  struct OpenRun {
    explicit OpenRun(size_t linkHeader) : run(linkHeader) {}
    PacketRun run;
    std::array<Packet, PacketRun::kMost> packets;
  };
  /// Flows whose packets are collected at the same time: the far gateway's fair round gives those of many in turns.
  /// Ours.
  static constexpr size_t kRuns = 32;

  void lengthenQueue();
  /// Gives the packets of one read to the sink. How many there were, lost ones included; 0: nothing is to be read.
  size_t readSome(PacketPool& pool, const Sink& sink);
  ssize_t readRaw(VirtioHeader& header, ByteSpan room, ByteSpan spill);
  size_t cut(const VirtioHeader& header, ByteView packet, Packet first, PacketPool& pool, const Sink& sink);
  void give(Packet packet, const Sink& sink);
  void writeAlone(const Packet& packet);
  void writeRun(OpenRun& open);
  bool isTaken(ssize_t written, size_t packets);

  UniqueFd fd_;
  std::unique_ptr<IoWatcher> watcher_;
  Kind kind_;
  bool hasHeader_ = false;            ///< each packet has a VirtioHeader before it
  std::unique_ptr<uint8_t[]> spill_;  ///< what a read brings beyond a packet buffer
  size_t linkHeader_;
  std::vector<OpenRun> runs_;    ///< kRuns, by the number of the flow; none without headers
  std::vector<OpenRun*> begun_;  ///< those that have packets, in the order of their beginning
};

}  // namespace braid
