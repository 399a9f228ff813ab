// Frames of an authenticated but hostile peer: the input is cut into datagrams that are sealed with the
// session's real keys. Each begins with a byte for the subflow, one for ECN, route and time, and two for its
// length. The size of the input chooses the recovery policy and the buffer for decoding.

#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tunnel/session/session.h"

namespace {

using namespace braid;

struct Owner final : SessionOwner {
  size_t delivered = 0;
  void onDelivered(Packet) override { ++delivered; }
  void onTooLarge(ByteView) override {}
};

constexpr size_t kPoolLimit = 4096;

SessionSecrets secrets() {
  SessionSecrets s;
  s.initiatorSecret.fill(1);
  s.responderSecret.fill(2);
  s.sessionId = 7;
  return s;
}

/// What the session has to say must fit its limits and end at some time.
void drain(Session& session, Time now) {
  Datagram out;
  size_t count = 0;
  while (session.pollDatagram(out, now)) {
    CHECK(out.bytes.size() >= kMinDatagram && out.bytes.size() <= 1472);
    out.bytes.reset();
    CHECK(++count < 100000);
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  PacketPool pool(2048, kPoolLimit);
  SessionOptions options;
  options.holdBytes = 64 << 10;
  constexpr const char* kPolicies[] = {"adaptive", "fuso", "cofuso", "redundant", "proactive", "corrective"};
  options.recovery = kPolicies[size % 6];
  options.decodeBuffer = size % 7 == 0 ? 0 : size % 7 == 1 ? 1 : 64;
  Owner owner;
  EventQueue queue;
  std::string name;
  PeerEvents events(queue, name);
  Time now = Time{} + 1s;
  KeySchedule peer(secrets(), KeySchedule::Role::kInitiator, {}, now);
  {
    SecretRandom random(knownKey(1));
    Session session(secrets(), KeySchedule::Role::kResponder, options, pool, events, owner, random, now);
    PacketNumber numbers[256] = {};
    Reader in({data, size});
    while (in.remaining() > 4) {
      SubflowId subflow(in.u8());
      uint8_t how = in.u8();
      size_t length = in.u16() % 1400;
      ByteView frames = in.take(std::min(length, in.remaining()));
      if (frames.empty()) continue;
      now += Duration(how & 0x70) * 100000;
      Packet datagram = pool.allocate();
      PacketNumber pn = numbers[subflow.value()]++;
      uint8_t* out = datagram.append(kHeaderSize + frames.size() + kTagSize);
      DatagramHeader header{kWireVersion, peer.epochBits(), 7, subflow, static_cast<uint32_t>(pn.value())};
      writeHeader(header, out);
      CHECK(peer.seal(subflow, pn, {out, kHeaderSize}, {&frames, 1}, out + kHeaderSize));
      Route from{1, {}, *Endpoint::parse(how & 4 ? "192.0.2.1:1" : "192.0.2.2:2")};
      session.onDatagram(header, from, static_cast<Ecn>(how & 3), std::move(datagram), now);
      if (how & 8) {
        uint8_t bytes[100] = {0x45};
        session.onInnerPacket(pool.copy(bytes), FlowKey{Address::Family::kV4, how}, how & 0x10, false, now);
      }
      if (session.nextDeadline(now) <= now) session.onTimer(now);
      drain(session, now);
    }
    for (int i = 0; i < 50; ++i) {
      Time next = session.nextDeadline(now);
      if (next == kNever) break;
      now = std::max(now, next);
      session.onTimer(now);
      drain(session, now);
    }
  }
  CHECK(pool.inUse() == 0);
}
