#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/packet.h"

namespace braid {

struct DeviceCounters {
  uint64_t readPackets = 0, readBytes = 0;
  uint64_t readTooBig = 0;    ///< longer than the pool's payload: dropped
  uint64_t readNoBuffer = 0;  ///< pool exhausted: dropped
  uint64_t readErrors = 0;
  uint64_t writtenPackets = 0, writtenBytes = 0;
  uint64_t writeFull = 0;    ///< the host's queue is full (EAGAIN, ENOBUFS): dropped
  uint64_t writeErrors = 0;  ///< refused: malformed (EINVAL) or the device is down (EIO)
};

/// A TUN (IP packets) or TAP (Ethernet frames) device.
class TunDevice {
 public:
  enum class Kind : uint8_t { kTun, kTap };
  using Sink = std::function<void(Packet&&)>;

  virtual ~TunDevice() = default;

  /// The name that the host gave.
  const std::string& name() const { return name_; }
  /// Somebody deleted the device; nothing will come or go any more. A device that goes becomes readable, and
  /// read() notices.
  bool gone() const { return gone_; }
  const DeviceCounters& counters() const { return counters_; }

  /// Reads until there is nothing more, at most `limit` packets, and gives each to the sink. Returns how many
  /// reads took something; less than `limit` means that the device is empty for now.
  virtual size_t read(PacketPool& pool, size_t limit, const Sink& sink) = 0;
  /// One packet, in one system call. False when the host did not take the packet: then it is counted and gone.
  virtual bool write(ByteView packet) = 0;

 protected:
  std::string name_;
  DeviceCounters counters_;
  bool gone_ = false;
};

}  // namespace braid
