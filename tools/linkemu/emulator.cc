#include "linkemu/emulator.h"

#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "linkemu/tun_device.h"

namespace braid {

namespace {

// All links together hold at most this many packets (100 MB of 1500 bytes, taken as needed): 2 s at
// 300 Mbit/s.
constexpr size_t kPoolPackets = 65536;
// Packets read from one device before the other devices are served.
constexpr size_t kBatch = 64;
// The shortest timer interval, so that a fast link causes few wake-ups. It is also the largest
// delay error that this adds.
constexpr Duration kTick = 50us;
// While more than kBusyPackets are read per kBusyWindow, the loop sleeps for kNap before it reads
// again, so that it serves several packets per wake-up. This halves the cost of a packet at 100
// Mbit/s. A quiet link keeps exact times.
constexpr Duration kBusyWindow = 1ms;
constexpr size_t kBusyPackets = 4;
constexpr Duration kNap = 150us;

size_t largestMtu(const EmulatorConfig& config) {
  size_t most = 0;
  for (const LinkConfig& link : config.links) most = std::max(most, link.deviceMtu);
  return most;
}

}  // namespace

Time monotonicNow() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Time{std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec)};
}

Emulator::Emulator(const EmulatorConfig& config, struct ev_loop* loop)
    : loop_(loop), pool_(largestMtu(config), kPoolPackets) {
  // The default slack of 50 us would add to each nap.
  prctl(PR_SET_TIMERSLACK, 1UL);
  Random seeds(config.seed);
  for (const LinkConfig& link : config.links) addLink(link, seeds);
  timer_ = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd");
  ev_io_init(
      &timerWatcher_,
      [](struct ev_loop*, ev_io* w, int) { static_cast<Emulator*>(w->data)->onTimer(); },
      timer_.get(), EV_READ);
  timerWatcher_.data = this;
  ev_io_start(loop_, &timerWatcher_);
  for (auto& direction : directions_) {
    // One callback needs both objects, so the loop's user data holds the emulator.
    ev_io_init(
        &direction->watcher,
        [](struct ev_loop* l, ev_io* w, int) {
          static_cast<Emulator*>(ev_userdata(l))->onReadable(*static_cast<Direction*>(w->data));
        },
        direction->in.get(), EV_READ);
    direction->watcher.data = direction.get();
    ev_io_start(loop_, &direction->watcher);
  }
  ev_set_userdata(loop_, this);
}

Emulator::~Emulator() {
  ev_io_stop(loop_, &timerWatcher_);
  for (auto& direction : directions_) ev_io_stop(loop_, &direction->watcher);
}

void Emulator::addLink(const LinkConfig& config, Random& seeds) {
  Time now = monotonicNow();
  auto ab = std::make_unique<Direction>(config.ab, seeds.next(), now);
  auto ba = std::make_unique<Direction>(config.ba, seeds.next(), now);
  ab->in = makeTunDevice(config.a.netns, config.a.device, config.deviceMtu);
  ba->in = makeTunDevice(config.b.netns, config.b.device, config.deviceMtu);
  ab->name = ba->name = config.name;
  ba->forward = false;
  ab->reverse = ba.get();
  ba->reverse = ab.get();
  directions_.push_back(std::move(ab));
  directions_.push_back(std::move(ba));
}

void Emulator::onReadable(Direction& direction) {
  size_t packets = 0;
  while (packets < kBatch && readOne(direction)) ++packets;
  Time now = monotonicNow();
  deliverDue(direction, now);
  coalesce(packets, now);
  armTimer(now);
}

/// Counts packets read and decides whether the loop sleeps between reads.
void Emulator::coalesce(size_t packets, Time now) {
  windowPackets_ += packets;
  Duration window = now - windowStart_;
  if (window < kBusyWindow) return;
  bool busy = windowPackets_ * kBusyWindow > kBusyPackets * window;
  ev_set_io_collect_interval(loop_, busy ? toSeconds(kNap) : 0);
  windowPackets_ = 0;
  windowStart_ = now;
}

void Emulator::onTimer() {
  Time now = monotonicNow();
  for (auto& direction : directions_) deliverDue(*direction, now);
  coalesce(0, now);
  armedFor_ = Time::min();  // expired: armTimer() has to set it, which also clears its readiness
  armTimer(now);
}

/// Reads one packet and pushes it. False when there is none.
bool Emulator::readOne(Direction& direction) {
  if (!spare_) spare_ = pool_.allocate();
  uint8_t scratch[1];
  ssize_t n = spare_ ? ::read(direction.in.get(), spare_.data(), pool_.payload())
                     : ::read(direction.in.get(), scratch, sizeof scratch);
  if (n <= 0) {
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    std::fprintf(stderr, "linkemu: link %s: device is gone: %s\n", direction.name.c_str(),
                 std::strerror(errno));
    ev_io_stop(loop_, &direction.watcher);
    return false;
  }
  if (!spare_) {
    ++direction.noBuffer;
    return true;
  }
  size_t bytes = static_cast<size_t>(n);
  spare_.setSize(bytes);
  direction.link.push({std::move(spare_), &pool_}, bytes, monotonicNow());
  return true;
}

void Emulator::deliverDue(Direction& direction, Time now) {
  while (std::optional<IpPacket> item = direction.link.pop(now)) {
    ssize_t n = ::write(direction.reverse->in.get(), item->packet.data(), item->packet.size());
    if (n < 0) ++direction.writeErrors;  // the device is down, or corruption left no IP packet
  }
}

void Emulator::armTimer(Time now) {
  Time next = kNever;
  for (auto& direction : directions_) next = std::min(next, direction->link.nextDelivery());
  if (next != kNever) next = std::max(next, now + kTick);
  // A timer that fires too early only costs one look; moving it later would cost a system call per
  // packet.
  bool expired = armedFor_ == Time::min();
  if (!expired && next >= armedFor_) return;
  armedFor_ = next;
  itimerspec spec{};
  if (next != kNever) {
    auto ns = next.time_since_epoch().count();
    spec.it_value = {static_cast<time_t>(ns / 1'000'000'000),
                     static_cast<long>(ns % 1'000'000'000)};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace braid
