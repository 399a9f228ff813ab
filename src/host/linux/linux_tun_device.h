#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/linux/loop.h"
#include "host/linux/tun_io.h"
#include "host/system.h"
#include "host/tun_device.h"

namespace braid {

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
