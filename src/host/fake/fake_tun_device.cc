#include "host/fake/fake_tun_device.h"

#include <utility>

namespace braid {

FakeTunDevice::FakeTunDevice(const std::string& name, std::function<void()> onReadable)
    : onReadable_(std::move(onReadable)) {
  name_ = name;
}

void FakeTunDevice::put(ByteView packet) {
  in_.emplace_back(packet.begin(), packet.end());
  onReadable_();
}

void FakeTunDevice::vanish() {
  vanished_ = true;
  onReadable_();
}

std::vector<std::vector<uint8_t>> FakeTunDevice::takeWritten() {
  return std::exchange(written_, {});
}

size_t FakeTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  gone_ = vanished_;
  size_t reads = 0;
  for (; !gone_ && reads < limit && !in_.empty(); ++reads) {
    Packet packet = pool.copy(in_.front());
    in_.pop_front();
    ++(packet ? counters_.readPackets : counters_.readNoBuffer);
    if (packet) sink(std::move(packet));
  }
  return reads;
}

void FakeTunDevice::write(Packet packet) {
  if (vanished_) return void(++counters_.writeErrors);
  ++counters_.writtenPackets;
  counters_.writtenBytes += packet.size();
  written_.emplace_back(packet.view().begin(), packet.view().end());
}

}  // namespace braid
