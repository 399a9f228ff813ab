#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "inet/ip.h"
#include "simnet/inner_packets.h"
#include "simnet/link/link.h"
#include "simnet/station.h"
#include "simnet/timeline.h"

namespace braid::sim {

/// Two hosts joined by one link in each direction, in virtual time, without a gateway.
class WiredPair final : public Simulation {
 public:
  class End final : public Station {
   public:
    End(WiredPair& pair, std::string name, const char* v4, const char* v6, const LinkOptions& link,
        uint64_t seed);

    const std::string& name() const override { return name_; }
    Address host(bool v6) const override { return v6 ? v6_ : v4_; }
    void send(ByteView packet) override;
    void listen(uint8_t protocol, uint16_t port, Handler handler) override;

    /// Hands a packet to the handler for this protocol and port. For an ICMP error these are the
    /// protocol and port of the packet that it quotes.
    void deliver(ByteView packet, const InnerPacket& parsed, uint8_t protocol, uint16_t port);

    /// Changes the link into which this host sends.
    void setLink(const LinkOptions& link) { link_.setOptions(link, pair_.now()); }
    LinkStats stats() { return link_.stats(pair_.now()); }
    /// Called with each packet that the host sends, before the link. Returning false drops the
    /// packet.
    std::function<bool(ByteView, const InnerPacket&)> onSend;

   private:
    /// A packet on the link.
    struct Carried {
      Bytes bytes;
      friend bool markCe(Carried& c) { return braid::markCe(ByteSpan(c.bytes)); }
    };
    void wake();

    WiredPair& pair_;
    std::string name_;
    Address v4_, v6_;
    Link<Carried> link_;
    Time wakeAt_ = kNever;
    std::map<std::pair<uint8_t, uint16_t>, Handler> handlers_;
    friend class WiredPair;
  };

  /// `forth` is the link from left() to right(), `back` the one in the other direction.
  WiredPair(const LinkOptions& forth, const LinkOptions& back, uint64_t seed);
  End& left() { return left_; }
  End& right() { return right_; }
  /// Hash of every packet that arrived and its time: equal for equal runs.
  uint64_t hash() const { return hash_; }

 private:
  friend class End;
  End left_, right_;
  uint64_t hash_ = 0;
};

}  // namespace braid::sim
