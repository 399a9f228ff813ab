#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "inet/ecn.h"
#include "simnet/inner_packets.h"
#include "simnet/link/link.h"
#include "simnet/station.h"
#include "simnet/timeline.h"

namespace braid::sim {

/// Two hosts and a link in each direction, in virtual time; no gateway.
class WiredPair final : public Timeline {
 public:
  class End final : public Station {
   public:
    End(WiredPair& pair, std::string name, const char* v4, const char* v6, const LinkOptions& link,
        uint64_t seed);

    const std::string& name() const override { return name_; }
    Address host(bool v6) const override { return v6 ? v6_ : v4_; }
    void send(ByteView packet) override;
    void listen(uint8_t protocol, uint16_t port, Handler handler) override;

    /// Hands a packet to who listens for this protocol and port. An ICMP error is for those of the packet that
    /// it quotes.
    void deliver(ByteView packet, const InnerPacket& parsed, uint8_t protocol, uint16_t port);

    /// The link that this host sends into.
    void setLink(const LinkOptions& link) { link_.setOptions(link, pair_.now()); }
    LinkStats stats() { return link_.stats(pair_.now()); }
    /// Sees each packet that the host sends, before the link; false: it is lost.
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

  /// `forth` leads from left() to right().
  WiredPair(const LinkOptions& forth, const LinkOptions& back, uint64_t seed);
  End& left() { return left_; }
  End& right() { return right_; }
  /// Covers every packet that arrived, with its time.
  uint64_t hash() const { return hash_; }
  /// Runs for so long.
  void run(Duration d) { runUntil(now() + d); }

 private:
  friend class End;
  End left_, right_;
  uint64_t hash_ = 0;
};

}  // namespace braid::sim
