#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "host/linux/virtio_header.h"
#include "host/packet_stock.h"
#include "host/tun_device.h"
#include "inet/packet_segmenter.h"

namespace braid {

/// The reading half of a LinuxTunDevice: used by one thread at a time. Queues are read in turns.
class TunReader {
 public:
  /// `fds`: of the device's queues; they must stay open. `hasHeader`: each packet has a VirtioHeader before it.
  TunReader(const std::vector<int>& fds, TunDevice::Kind kind, bool hasHeader, PacketPool& pool);

  /// From now on a queue that was empty is not looked at until setReady() says that it is not.
  void setWatched() { isWatched_ = true; }
  void setReady(size_t queue) { queues_[queue].isReady = true; }
  /// TunDevice::read(). While the stock is lent, it also ends when that is used up; what was read and not given to the
  /// sink comes first the next time.
  size_t read(size_t limit, DeviceCounters& counters, const TunDevice::Sink& sink);
  /// read() has something for the sink without asking the kernel.
  bool hasRest() const { return segments_.has_value(); }
  /// Somebody deleted the device.
  bool gone() const { return gone_; }
  PacketStock& stock() { return stock_; }

 private:
  static constexpr size_t kEthernetHeader = 14;
  /// The longest packet of an IP stack without jumbograms, and what goes before it.
  static constexpr size_t kLongest = 65535 + kEthernetHeader + 4;

  struct Queue {
    int fd;
    bool isReady = true;  ///< may have something to read
  };
  /// Reads of a queue before it is the next one's turn, and of all queues in one read(): a read costs about the same
  /// whether it brings one packet or 45. Ours.
  static constexpr size_t kShare = 16, kMostReads = 64;

  Queue* nextReady();
  size_t readSome(const Queue& queue, DeviceCounters& counters, const TunDevice::Sink& sink);
  ssize_t readRaw(const Queue& queue, VirtioHeader& header, ByteSpan room, ByteSpan spill,
                  DeviceCounters& counters);
  bool begin(const VirtioHeader& header, ByteView packet);
  size_t cut(Packet first, DeviceCounters& counters, const TunDevice::Sink& sink);

  std::vector<Queue> queues_;
  size_t last_ = 0;  ///< the queue that was read last
  bool isWatched_ = false;
  TunDevice::Kind kind_;
  bool hasHeader_;
  bool gone_ = false;
  PacketStock stock_;
  std::unique_ptr<uint8_t[]> spill_;         ///< what a read brings beyond a packet buffer
  std::optional<PacketSegmenter> segments_;  ///< of what is in spill_, those that are left
};

}  // namespace braid
