#pragma once

#include <memory>
#include <optional>

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
class LinuxTunDevice final : public TunDevice {
 public:
  /// Packets that the kernel keeps while the daemon is busy. What does not fit is dropped where no AQM sees it, so
  /// the kernel's queue is for short bursts only, and the managed one is flow_queue.h. It is one row for all flows:
  /// when more comes than the daemon can carry, it is full, and every packet waits for all of it. Ours: 9 ms of the
  /// smallest packets on a core that carries 110,000 in a second.
  static constexpr int kKernelQueue = 1024;

  /// Creates the device or takes over a persistent one without owner. Throws SystemError.
  explicit LinuxTunDevice(const DeviceOptions& options);

  ~LinuxTunDevice() override;

  int fd() const { return fd_.get(); }
  /// Calls back on the loop while there is something to read. `workers`: threads that may read and write large batches;
  /// they must outlive this.
  void watch(Loop& loop, IoWatcher::Callback onReadable, Workers* workers = nullptr);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override;

 private:
  struct Handed;
  void lengthenQueue();
  Handed* handed();
  void beginReading();
  size_t readAhead(const Sink& sink);
  void writeHere();
  void settleWriting();
  void onWritten();

  UniqueFd fd_;
  IoWatcher::Callback onReadable_;
  std::unique_ptr<IoWatcher> watcher_;
  Kind kind_;
  bool hasHeader_ = false;  ///< each packet has a VirtioHeader before it
  std::optional<TunReader> reader_;
  std::optional<TunWriter> writer_;
  Workers* workers_ = nullptr;
  std::unique_ptr<Handed> handed_;
};

}  // namespace braid
