#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/packet.h"
#include "gateway/system.h"

namespace braid {

struct DeviceCounters {
  uint64_t readPackets = 0, readBytes = 0;
  uint64_t readTooBig = 0;    ///< longer than the pool's payload: dropped
  uint64_t readNoBuffer = 0;  ///< pool exhausted: dropped
  uint64_t readErrors = 0;
  uint64_t writtenPackets = 0, writtenBytes = 0;
  uint64_t writeFull = 0;    ///< EAGAIN, ENOBUFS: the kernel's queue is full, dropped
  uint64_t writeErrors = 0;  ///< refused: malformed (EINVAL) or the device is down (EIO)
};

/// A TUN (IP packets) or TAP (Ethernet frames) device: one packet per read and write, no packet information
/// header. The device goes when this object goes, unless the administrator made it persistent before.
class Device {
 public:
  /// Packets that the kernel keeps for us while we are busy. It drops what does not fit, where no AQM sees
  /// it; the queue that is managed is ours (flow_queue.h). Ours: 50 ms of full packets at 1 Gbit/s.
  static constexpr int kKernelQueue = 4096;

  enum class Kind : uint8_t { kTun, kTap };

  /// Creates the device or takes over a persistent one without owner. `name` of 1 to 15 bytes; a "%d" in it
  /// is numbered by the kernel. Throws SystemError.
  Device(Kind kind, const std::string& name);

  int fd() const { return fd_.get(); }
  /// The name that the kernel gave.
  const std::string& name() const { return name_; }
  /// Somebody deleted the device; nothing will come or go any more.
  bool gone() const { return gone_; }
  const DeviceCounters& counters() const { return counters_; }

  /// Reads until there is nothing more, at most `limit` packets, and gives each to sink(Packet&&). Returns
  /// how many reads took something; less than `limit` means that the device is empty for now.
  template <typename Sink>
  size_t read(PacketPool& pool, size_t limit, Sink&& sink) {
    size_t reads = 0;
    for (; reads < limit; ++reads) {
      Packet p;
      if (!readOne(pool, p)) break;
      if (p) sink(std::move(p));
    }
    return reads;
  }
  /// False when the packet was not taken; it is counted and gone.
  bool write(ByteView packet);

 private:
  void lengthenQueue();
  /// False when nothing is to be read. `out` stays empty when what was read had to be dropped.
  bool readOne(PacketPool& pool, Packet& out);

  UniqueFd fd_;
  std::string name_;
  DeviceCounters counters_;
  bool gone_ = false;
};

}  // namespace braid
