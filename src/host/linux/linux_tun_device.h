#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "host/linux/loop.h"
#include "host/linux/tun_reader.h"
#include "host/linux/tun_writer.h"
#include "host/linux/workers.h"
#include "host/tun_device.h"
#include "host/unique_fd.h"

namespace braid {

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

  ~LinuxTunDevice() override;

  size_t queues() const { return fds_.size(); }
  /// Of the first queue.
  int fd() const { return fds_[0].get(); }
  /// Calls back on the loop while there is something to read. `workers`: threads that may read and write large batches;
  /// they must outlive this.
  void watch(Loop& loop, IoWatcher::Callback onReadable, Workers* workers = nullptr);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override;

 private:
  struct Handed;
  bool create(int flags, unsigned queues);
  void lengthenQueues();
  std::vector<int> rawFds() const;
  void onQueueReadable(size_t queue);
  void wakePaused();
  void watchPaused();
  Handed* handed();
  void beginReading();
  size_t readAhead(const Sink& sink);
  void writeHere();
  void settleWriting();
  void onWritten();

  std::vector<UniqueFd> fds_;  ///< of the queues
  IoWatcher::Callback onReadable_;
  std::vector<std::unique_ptr<IoWatcher>> watchers_;  ///< of the queues
  std::vector<size_t> paused_;                        ///< queues that are not watched while a worker reads
  Kind kind_;
  bool hasHeader_ = false;  ///< each packet has a VirtioHeader before it
  std::optional<TunReader> reader_;
  std::optional<TunWriter> writer_;
  Workers* workers_ = nullptr;
  std::unique_ptr<Handed> handed_;
};

}  // namespace braid
