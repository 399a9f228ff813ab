#pragma once

#include <deque>
#include <vector>

#include "host/tun_device.h"

namespace braid {

/// A device without a kernel behind it.
class FakeTunDevice final : public TunDevice {
 public:
  FakeTunDevice(const std::string& name, std::function<void()> onReadable);

  /// The host routes a packet into the device.
  void put(ByteView packet);
  /// Somebody deletes the device.
  void vanish();
  /// What came out since the last call.
  std::vector<std::vector<uint8_t>> takeWritten();

  size_t read(PacketPool& pool, size_t limit, const Sink& sink) override;
  void write(Packet packet) override;
  void flush() override {}

 private:
  std::function<void()> onReadable_;
  std::deque<std::vector<uint8_t>> in_;
  std::vector<std::vector<uint8_t>> written_;
  bool vanished_ = false;
};

}  // namespace braid
