#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simnet/world.h"

namespace braid::sim {

struct UdpOptions {
  size_t payload = 200;      ///< bytes, at least 16
  Duration interval = 20ms;  ///< between datagrams
  uint64_t count = 100;      ///< datagrams
  /// Datagrams sent back to back; the pause after them is this many intervals
  uint64_t together = 1;
  bool v6 = false;
  bool ecn = false;
  bool dontFragment = true;
  uint8_t dscp = 0;
};

/// UDP datagrams at a constant rate, like a voice call. Each carries its number, its sending time
/// and known content.
class UdpFlow final : public Host {
 public:
  UdpFlow(World& world, Node& from, Node& to, uint16_t port, UdpOptions options);

  uint64_t sent() const { return sent_; }
  uint64_t received() const { return received_; }
  bool finished() const { return sent_ >= options_.count; }
  uint64_t duplicates() const { return duplicates_; }
  uint64_t wrong() const { return wrong_; }
  uint64_t reordered() const { return reordered_; }
  uint64_t ceSeen() const { return ceSeen_; }
  Duration worstDelay() const {
    return delays_.empty() ? Duration{} : *std::max_element(delays_.begin(), delays_.end());
  }
  /// The `share` quantile of the datagrams' delays: this part of them was not slower.
  Duration delay(double share) const;
  const std::vector<Duration>& delays() const { return delays_; }

 private:
  void send();
  void sendOne();
  void onPacket(ByteView packet, const InnerPacket& ip);

  World& world_;
  Node& from_;
  UdpOptions options_;
  uint16_t port_;
  uint64_t seed_;
  IpFields ip_;
  std::vector<bool> seen_;
  std::vector<Duration> delays_;
  uint64_t highest_ = 0;
  uint64_t sent_ = 0, received_ = 0, duplicates_ = 0, wrong_ = 0, reordered_ = 0, ceSeen_ = 0;
};

/// Echo requests from one host to another and their answers.
class Ping final : public Host {
 public:
  Ping(World& world, Node& from, Node& to, uint16_t id, Duration interval, unsigned count,
       bool v6 = false);

  unsigned answered() const { return static_cast<unsigned>(rtts_.size()); }
  unsigned unreachable() const { return unreachable_; }
  const std::vector<Duration>& rtts() const { return rtts_; }

 private:
  void send();

  World& world_;
  Node& from_;
  uint16_t id_;
  Duration interval_;
  unsigned left_;
  IpFields ip_;
  uint16_t sequence_ = 0;
  std::vector<Time> sentAt_;
  std::vector<Duration> rtts_;
  unsigned unreachable_ = 0;
};

}  // namespace braid::sim
