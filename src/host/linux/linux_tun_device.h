#pragma once

#include <memory>
#include <string>

#include "host/linux/loop.h"
#include "host/tun_device.h"
#include "host/unique_fd.h"

namespace braid {

/// A device of the kernel's tun driver: one packet per read and write, no packet information header. The
/// device goes when this object goes, unless the administrator made it persistent before.
class LinuxTunDevice final : public TunDevice {
 public:
  /// Packets that the kernel keeps while the daemon is busy. What does not fit is dropped where no AQM sees it, so
  /// the kernel's queue is for short bursts only, and the managed one is flow_queue.h. Ours: 50 ms of full packets
  /// at 1 Gbit/s.
  static constexpr int kKernelQueue = 4096;

  /// Creates the device or takes over a persistent one without owner. `name` of 1 to 15 bytes; a "%d" in it
  /// is numbered by the kernel. Throws SystemError.
  LinuxTunDevice(Kind kind, const std::string& name);

  int fd() const { return fd_.get(); }
  /// Calls back on the loop while there is something to read.
  void watch(Loop& loop, IoWatcher::Callback onReadable);

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  bool write(ByteView packet) override;

 private:
  void lengthenQueue();
  /// False when nothing is to be read. `out` stays empty when what was read had to be dropped.
  bool readOne(PacketPool& pool, Packet& out);

  UniqueFd fd_;
  std::unique_ptr<IoWatcher> watcher_;
};

}  // namespace braid
