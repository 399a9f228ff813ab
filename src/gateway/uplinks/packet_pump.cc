#include "gateway/uplinks/packet_pump.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace braid {

namespace {
// Most packets and datagrams per source and turn of the loop: enough for full batches, and too few
// to cause a noticeable delay.
constexpr size_t kTurn = 64;
}  // namespace

PacketPump::PacketPump(Host& host, const DeviceOptions& device, bool socketOffloads,
                       uint32_t socketMark, PacketPool& pool, Tunnel& tunnel, LogLimiter& log)
    : clock_(host.clock()),
      pool_(pool),
      tunnel_(tunnel),
      log_(log),
      device_(host.openDevice(device, [this] { deviceReadable_ = true; })),
      sockets_(
          host, pool, socketOffloads, *this,
          [this](std::span<ReceivedDatagram> batch) { return onDatagrams(batch); }, socketMark) {}

// Reads the clock once per batch, because all of the batch arrived before it was read. Otherwise a
// datagram would seem late because of those before it.
size_t PacketPump::onDatagrams(std::span<ReceivedDatagram> batch) {
  Time now = clock_.now();
  using Place = ReceivedDatagram::Place;
  RunDamage* damage = nullptr;  // of the socket: a batch is from one socket
  if (!batch.empty()) {
    damage = sockets_.damageOf(batch[0].from.socket);
    auto isMerged = [](const ReceivedDatagram& r) { return r.place != Place::kAlone; };
    if (damage && !damage->hasBegun() && std::ranges::none_of(batch, isMerged)) damage = nullptr;
  }
  uint64_t damaged = 0;
  for (ReceivedDatagram& r : batch) {
    bool isBad = tunnel_.onDatagram(r.from, r.ecn, std::move(r.bytes), now) == Drop::kBadSeal;
    if (damage) damage->add(r.place, isBad);
    damaged += isBad && r.place == Place::kLater;
  }
  if (damage && damaged > 0) onMerged(batch[0].from.socket, *damage, damaged);
  return deliverPackets(SIZE_MAX);
}

// Datagrams behind the first one of a merged message were damaged.
void PacketPump::onMerged(SocketId socket, RunDamage& damage, uint64_t damaged) {
  bool always = damage.isKnown();
  const DatagramSocket* of = sockets_.find(socket);
  if (always && of)
    spdlog::warn(
        "datagrams to {} come damaged where the kernel has merged several (UDP GRO): it merges "
        "them no more there; see to the network card's driver ('ethtool -K INTERFACE gro off', "
        "rx-gro-hw, lro), or set offloads.sockets off",
        of->local().toString());
  sockets_.onDamage(socket, damaged, always);
  if (always) damage = {};
}

// Reads once per turn, however many of the device's queues are readable, so that the same number of
// packets enters and leaves per turn. Further packets wait in their queues of the device.
bool PacketPump::readDevice(Time now) {
  if (!std::exchange(deviceReadable_, false)) return false;
  newPackets_ += device_->read(pool_, kTurn, [&](Packet&& p) {
    if (!filter_ || !filter_(p, now)) tunnel_.onInnerPacket(std::move(p), now);
  });
  if (device_->gone()) spdlog::critical("device {} was deleted", device_->name());
  deviceReadable_ = newPackets_ >= kTurn;
  return deviceReadable_ || device_->gone();
}

void PacketPump::toTunnel(Packet packet, Time now) {
  tunnel_.onInnerPacket(std::move(packet), now);
  ++newPackets_;
}

void PacketPump::toDevice(Packet packet) {
  device_->write(std::move(packet));
  device_->flush();
}

bool PacketPump::turn(Time now) {
  bool more = readDevice(now);
  more |= sendDatagrams(now);
  more |= deliverPackets(kTurn) == kTurn;
  return more;
}

// A single new packet is sent at once, before its protection is made and sealed.
bool PacketPump::sendDatagrams(Time now) {
  size_t n = 0;
  for (; n < kTurn; ++n) {
    Datagram d;
    if (!tunnel_.pollDatagram(d, now)) break;
    sockets_.send(std::move(d));
    if (n == 0 && newPackets_ == 1) sockets_.flush();
  }
  newPackets_ = 0;
  sockets_.flush();
  return n == kTurn;
}

// Returns how many were delivered.
size_t PacketPump::deliverPackets(size_t limit) {
  size_t n = 0;
  for (; n < limit; ++n) {
    Packet p;
    if (!tunnel_.pollInnerPacket(p)) break;
    device_->write(std::move(p));
  }
  device_->flush();
  uint64_t refused = device_->counters().refusedRuns;
  if (refused != std::exchange(refusedRuns_, refused)) {
    spdlog::warn("device {} refuses several packets in one write: such ones are written one by one",
                 device_->name());
  }
  return n;
}

void PacketPump::onSendError(const Datagram& refused, int error) {
  Time now = clock_.now();
  tunnel_.onSendError(refused, now);
  uint64_t suppressed;
  if (!log_.allow(LogKind::kSendError, now, suppressed))
    return;  // a full link refuses thousands of datagrams per second
  spdlog::warn("cannot send to {}: {}{}", refused.route.remote.toString(), std::strerror(error),
               LogLimiter::suffix(suppressed));
}

HostDrops PacketPump::drops() const {
  const SocketCounters sockets = sockets_.counters();
  const SocketDrops& ofSockets = sockets;
  const DeviceDrops& ofDevice = device_->counters();
  return {ofSockets, ofDevice, sockets_.orphans()};
}

HostTraffic PacketPump::traffic() const {
  const SocketCounters sockets = sockets_.counters();
  const SocketTraffic& ofSockets = sockets;
  const DeviceTraffic& ofDevice = device_->counters();
  return {ofSockets, ofDevice};
}

}  // namespace braid
