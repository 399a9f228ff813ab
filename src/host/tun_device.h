#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/field.h"
#include "base/packet.h"

namespace braid {

/// Packets that were lost at a device.
struct DeviceDrops {
  uint64_t readTooBig = 0, readNoBuffer = 0;
  uint64_t writeFull = 0, writeErrors = 0;
};
template <>
inline constexpr auto kFieldsOf<DeviceDrops> = field::table<DeviceDrops>(
    field::counter("device_read_truncated", FieldUnit::kPackets,
                   "packets from the host longer than a packet buffer", &DeviceDrops::readTooBig),
    field::counter("device_read_no_buffer", FieldUnit::kPackets,
                   "packets from the host when no packet buffer was free",
                   &DeviceDrops::readNoBuffer),
    field::counter("device_write_full", FieldUnit::kPackets,
                   "packets not taken: the device's queue was full", &DeviceDrops::writeFull),
    field::counter("device_write_failed", FieldUnit::kPackets,
                   "packets not taken: malformed, or the device is down",
                   &DeviceDrops::writeErrors));

/// Traffic through a device.
struct DeviceTraffic {
  uint64_t readPackets = 0, readBytes = 0, readErrors = 0;
  uint64_t writtenPackets = 0, writtenBytes = 0;
  uint64_t reads = 0, writes = 0;
  uint64_t refusedRuns = 0;
};
template <>
inline constexpr auto kFieldsOf<DeviceTraffic> = field::table<DeviceTraffic>(
    field::counter("device_read_packets", FieldUnit::kPackets, "packets that came from the host",
                   &DeviceTraffic::readPackets),
    field::counter("device_read_bytes", FieldUnit::kBytes,
                   "packets that came from the host, in bytes", &DeviceTraffic::readBytes),
    field::counter("device_read_errors", FieldUnit::kNone,
                   "reads that failed, or brought what could not be cut into packets",
                   &DeviceTraffic::readErrors),
    field::counter("device_written_packets", FieldUnit::kPackets, "packets given to the host",
                   &DeviceTraffic::writtenPackets),
    field::counter("device_written_bytes", FieldUnit::kBytes, "packets given to the host, in bytes",
                   &DeviceTraffic::writtenBytes),
    field::counter("device_reads", FieldUnit::kNone,
                   "reads that brought something: a read may bring many TCP segments or UDP "
                   "datagrams (`offloads`)",
                   &DeviceTraffic::reads),
    field::counter("device_writes", FieldUnit::kNone,
                   "writes that the host took: a write may hold many TCP segments or UDP datagrams",
                   &DeviceTraffic::writes),
    field::counter("device_runs_refused", FieldUnit::kNone,
                   "writes of several packets that the host refused: they were written one by one, "
                   "as all such packets since then",
                   &DeviceTraffic::refusedRuns));

struct DeviceCounters : DeviceDrops, DeviceTraffic {};
template <>
inline constexpr auto kFieldsOf<DeviceCounters> =
    field::table<DeviceCounters>(field::base<DeviceDrops>(), field::base<DeviceTraffic>());

struct DeviceOptions {
  enum class Kind : uint8_t { kTun, kTap };
  Kind kind = Kind::kTun;
  std::string name;  ///< 1 to 15 bytes; the host replaces a "%d" by a number
  /// Pass many TCP segments or UDP datagrams in one read or write, where the host supports that.
  bool offloads = false;
  /// The number of queues over which the host spreads the flows; fewer where the host supports
  /// fewer.
  unsigned queues = 1;
};

/// A TUN (IP packets) or TAP (Ethernet frames) device.
class TunDevice {
 public:
  using Kind = DeviceOptions::Kind;
  using Sink = std::function<void(Packet&&)>;

  virtual ~TunDevice() = default;

  /// The name that the host gave to the device.
  const std::string& name() const { return name_; }
  /// Whether the device was deleted: no packets can be read or written any more. A device that is
  /// deleted becomes readable, and read() notices the deletion.
  bool gone() const { return gone_; }
  const DeviceCounters& counters() const { return counters_; }

  /// Reads until nothing is left or at least `limit` packets have come; all packets of the last
  /// read are included. Gives each packet to the sink. Returns how many there were, including lost
  /// ones. Less than `limit` means that the device is empty for now.
  virtual size_t read(PacketPool& pool, size_t limit, const Sink& sink) = 0;
  /// Gives a packet to the host, at the latest with flush(): packets that belong together may be
  /// written in one system call. A packet that the host does not take is counted and dropped.
  virtual void write(Packet packet) = 0;
  /// Gives the packets that write() has held back to the host. Must be called before the caller
  /// waits for anything.
  virtual void flush() = 0;

 protected:
  std::string name_;
  DeviceCounters counters_;
  bool gone_ = false;
};

}  // namespace braid
