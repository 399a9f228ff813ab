// The ack shim on a script of packets. It must keep its limits, send only well-formed ACKs of data
// that the receiver acknowledged and copies of packets that it was given, and free everything in
// the end.
//
// Each step has 8 bytes: the action, the flow, two numbers that become sequence numbers near the
// flow's own, flags, length, window and time. A step with first byte 0xff takes the rest of the
// input as a raw packet.

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "ackshim/ack_shim.h"
#include "inet/ip.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;

struct Tunnel final : FlowActivityQuery {
  bool isCarrying(const FlowKey&) const override { return carrying; }
  bool carrying = false;
};

std::vector<uint8_t> packetOf(ByteView step, bool fromHost) {
  uint8_t flow = step[1] % 4;
  bool v6 = flow & 1;
  size_t ipSize = v6 ? ip::kV6Header : ip::kV4Header;
  std::vector<uint8_t> options;
  if (step[6] & 1) options = {1, 1, 8, 10, 0, 0, 1, step[7], 0, 0, 1, step[2]};
  if (step[6] & 2) options.insert(options.end(), {1, 3, 3, 7, 1, 1, 4, 2});
  if (step[6] & 4) {
    uint8_t left = step[3], right = static_cast<uint8_t>(step[3] + step[7] % 16);
    options.insert(options.end(), {1, 1, 5, 10, 0, 0, left, 0, 0, 0, right, 0});
  }
  size_t payload = size_t{step[5]} * 4;
  std::vector<uint8_t> b(ipSize + ip::kTcpHeader + options.size() + payload);
  uint8_t* tcp = &b[ipSize];
  if (v6) {
    store32(&b[0], 0x60000000);
    store16(&b[4], static_cast<uint16_t>(b.size() - ipSize));
    b[6] = ip::kTcp;
    b[7] = 64;
    b[fromHost ? 8 : 24] = 0xfd;
  } else {
    b[0] = 0x45;
    store16(&b[2], static_cast<uint16_t>(b.size()));
    b[8] = 64;
    b[9] = ip::kTcp;
    b[fromHost ? 12 : 16] = 10;
  }
  store16(tcp + (fromHost ? 0 : 2), static_cast<uint16_t>(1000 + flow));
  store16(tcp + (fromHost ? 2 : 0), 80);
  // A SYN's data begins at the multiple, and an ACK may include a FIN.
  store32(tcp + 4, uint32_t{step[2]} * 256 - (step[4] & TcpFields::kSyn ? 1 : 0));
  store32(tcp + 8, uint32_t{step[3]} * 256 + (step[6] & 16 ? 1 : 0));
  tcp[12] = static_cast<uint8_t>((ip::kTcpHeader + options.size()) / 4 << 4);
  tcp[13] = step[4];
  store16(tcp + 14, step[6] & 8 ? 0 : 500);
  std::copy(options.begin(), options.end(), tcp + ip::kTcpHeader);
  return b;
}

bool transportValid(ByteView b, const InnerPacket& p) {
  ByteView segment = b.subspan(p.l4Offset, p.l4Length);
  return foldSum(sumBytes(segment, pseudoHeaderSum(p.src, p.dst, p.protocol, p.l4Length))) ==
         0xffff;
}

/// Checks a packet of the shim: it must be a pure ACK of a number that the peer acknowledged
/// before, or a copy of data or of a SYN.
void check(ByteView b, const std::set<uint32_t>& acknowledged, const std::set<std::string>& given) {
  auto p = parseInnerPacket(b);
  CHECK(p && p->tcp && p->size == b.size());
  if (p->payloadLength > 0 || p->tcp->isFin() || p->tcp->isSyn()) {
    CHECK(given.contains(std::string(b.begin() + p->l4Offset, b.end())));
    return;
  }
  CHECK(p->tcp->flags == TcpFields::kAck);
  CHECK(p->ecn == Ecn::kNotEct);
  CHECK(transportValid(b, *p));
  CHECK(acknowledged.contains(p->tcp->ack));
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  AckShimOptions options;
  options.maxFlows = 2;
  options.maxHalfOpen = 3;
  options.cachePackets = 5;
  options.cachePerFlow = 3;
  options.gamma = 20'000;
  options.sackGap = size % 2;
  options.cacheOutgoing = size % 3 == 0;
  PacketPool pool(2000, 40);
  Tunnel tunnel;
  AckShim shim(options, pool, &tunnel, {1, 2});
  Time now(1s);
  std::set<uint32_t> acknowledged;
  std::set<std::string> given;
  auto drain = [&] {
    while (Packet p = shim.pollToHost()) check(p.view(), acknowledged, given);
    while (Packet p = shim.pollToPeer()) check(p.view(), acknowledged, given);
  };
  constexpr size_t kStep = 8;
  for (ByteView in(data, size); in.size() >= kStep; in = in.subspan(kStep)) {
    std::vector<uint8_t> b;
    bool raw = in[0] == 0xff;
    bool fromHost = in[0] & 1;
    b = raw ? std::vector<uint8_t>(in.begin() + 1, in.end()) : packetOf(in.first(kStep), fromHost);
    auto p = parseInnerPacket(b);
    if (p && p->tcp) {
      acknowledged.insert(p->tcp->ack);
      acknowledged.insert(
          // first sequence number of a direction that was joined, or its SYN before that
          p->tcp->seq);
      given.emplace(b.begin() + p->l4Offset, b.begin() + p->size);
    }
    if (p) {
      switch (in[0] % 8) {
        case 6:
          shim.onTunnelDropped(b, *p, now);
          break;
        case 7:
          tunnel.carrying = !tunnel.carrying;
          break;
        default:
          if (fromHost)
            shim.onFromHost(b, *p, now);
          else
            (void)shim.onToHost(b, *p, now);
      }
    }
    if (in[0] & 16) {
      now += 1us * (int64_t{1} << (in[7] % 25));
      for (int i = 0; i < 4; ++i) shim.onTimer(now);
    }
    drain();
    CHECK(shim.flows() <= options.maxFlows);
    CHECK(shim.cachedPackets() <= options.cachePackets);
    if (raw) break;
  }
  for (int i = 0; i < 4; ++i) shim.onTimer(now += 100s);
  drain();
  CHECK(shim.flows() == 0);
  CHECK(shim.cachedPackets() == 0);
  CHECK(shim.nextDeadline() == kNever);
}
