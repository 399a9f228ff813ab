#pragma once

#include <ev.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/packet.h"
#include "host/system.h"
#include "linkemu/config.h"
#include "linkemu/ip_packet.h"
#include "simnet/link/link.h"

namespace braid {

/// The current CLOCK_MONOTONIC time, which is the links' time.
Time monotonicNow();

/// Runs the links: reads each TUN device, passes its packets through the link model, and writes
/// them to the other device when they are due. Runs on the given libev loop, which it does not own.
class Emulator {
 public:
  /// Makes all devices; throws std::runtime_error when one cannot be made.
  Emulator(const EmulatorConfig& config, struct ev_loop* loop);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Answers one request of the control socket (one JSON object, see README.md) with one JSON
  /// object. A request that cannot be served gets {"error": text} and changes nothing.
  std::string handle(const std::string& request);
  bool quitting() const { return quitting_; }

 private:
  struct Direction {
    Direction(const LinkOptions& options, uint64_t seed, Time now) : link(options, seed, now) {}
    Link<IpPacket> link;
    std::string name;  // of the link
    bool forward = true;
    UniqueFd in;  // the device from which it reads
    Direction* reverse = nullptr;
    ev_io watcher{};
    uint64_t noBuffer = 0;
    uint64_t writeErrors = 0;
  };

  void addLink(const LinkConfig& config, Random& seeds);
  void onReadable(Direction& direction);
  void onTimer();
  bool readOne(Direction& direction);
  void deliverDue(Direction& direction, Time now);
  void armTimer(Time now);
  void coalesce(size_t packets, Time now);
  void set(const std::string& link, const std::string& direction, const nlohmann::json& params);
  nlohmann::json stats();

  struct ev_loop* loop_;
  PacketPool pool_;  // before the links: it must outlive their packets
  Packet spare_;     // allocated, not filled
  std::vector<std::unique_ptr<Direction>> directions_;
  UniqueFd timer_;
  ev_io timerWatcher_{};
  Time armedFor_ = kNever;
  Time windowStart_{};  // of coalesce()
  size_t windowPackets_ = 0;
  bool quitting_ = false;
};

}  // namespace braid
