// Frames of an authenticated but hostile peer: the input is cut into datagrams, which are sealed
// with the session's real keys. Each begins with a byte for the subflow, one for ECN, route, time
// and the driver's action, and two for its length. The size of the input chooses the recovery
// policy, the decoding buffer, and whether both sides support streams. If they do, the driver
// opens, writes, reads, finishes and resets streams as the first bytes of the frames say.

#include <array>
#include <vector>

#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/raw_peer.h"
#include "tunnel/session/session.h"
#include "tunnel/stream/registry.h"

namespace {

using namespace braid;

constexpr size_t kPoolLimit = 4096;
constexpr size_t kStreams = 20;

SessionSecrets secrets() {
  SessionSecrets s;
  s.initiatorSecret.fill(1);
  s.responderSecret.fill(2);
  s.sessionId = 7;
  return s;
}

/// The session's output must keep its limits and must end.
void drain(Session& session, PacketEventQueue& packets, Time now) {
  while (!packets.empty()) packets.popFront();
  Datagram out;
  size_t count = 0;
  while (session.pollDatagram(out, now)) {
    CHECK(out.bytes.size() >= kMinDatagram && out.bytes.size() <= 1472);
    out.bytes.reset();
    CHECK(++count < 100000);
  }
}

// The driver of streams.
class Driver {
 public:
  Driver(StreamRegistry& registry, Session& session) : registry_(registry), session_(session) {}

  void act(uint8_t what, uint8_t which, Time now) {
    if (what % 6 == 0) {
      const std::array<uint8_t, 4> source{10, 0, 0, which}, destination{192, 0, 2, 7};
      const StreamEnds ends{{Address::v4(source), 50000}, {Address::v4(destination), 443}};
      if (StreamHandle h = session_.streams().open(ends, now)) handles_.push_back(h);
      return;
    }
    Stream* s = handles_.empty() ? nullptr : registry_.find(handles_[which % handles_.size()]);
    if (!s) return;
    switch (what % 6) {
      case 1:
      case 2:
        s->of().sendSide().write(*s, std::vector<uint8_t>(1 + which * 40u, which), now);
        break;
      case 3:
        s->of().consume(*s, std::min<size_t>(s->assembly().readable(), 1 + which * 20u), now);
        break;
      case 4:
        s->of().sendSide().finish(*s, now);
        break;
      default:
        s->of().reset(*s, static_cast<StreamCause>(which % kStreamCauses), now);
    }
  }
  /// A stream's events must be reported only during its life, and its end exactly once.
  void listen() {
    StreamEvent event;
    for (size_t n = 0; registry_.poll(event); ++n) {
      CHECK(n < 10000);
      if (event.opened) handles_.push_back(event.stream);
      CHECK((registry_.find(event.stream) == nullptr) == (event.done || event.reset));
    }
    registry_.takeTouched([&](uint32_t session) { CHECK(session == session_.id()); });
    CHECK(session_.streams().size() <= kStreams);
  }

 private:
  StreamRegistry& registry_;
  Session& session_;
  std::vector<StreamHandle> handles_;
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  PacketPool pool(2048, kPoolLimit);
  SessionOptions options;
  options.holdBytes = 64 << 10;
  constexpr const char* kPolicies[] = {"adaptive",  "fuso",      "cofuso",
                                       "redundant", "proactive", "corrective"};
  options.recovery = kPolicies[size % 6];
  options.decodeBuffer = size % 7 == 0 ? 0 : size % 7 == 1 ? 1 : 64;
  StreamRegistry registry;
  options.streams.on = size % 4 != 0;
  SharedResources shared{.streams = &registry};
  options.streams.most = kStreams;
  options.streams.heldBytes = 100000;
  PacketEventQueue packets;
  PacketEvents packetEvents(packets, nullptr);
  StreamRateLimits rations;
  EventQueue queue;
  std::string name;
  PeerEvents events(queue, name);
  Time now = Time{} + 1s;
  KeySchedule peer(secrets(), KeySchedule::Role::kInitiator, {}, now);
  {
    SecretRandom random(knownKey(1));
    Session session(secrets(), KeySchedule::Role::kResponder, options,
                    {pool, random, events, packetEvents, rations, shared}, now);
    Driver driver(registry, session);
    PacketNumber numbers[256] = {};
    Reader in({data, size});
    auto say = [&](SubflowId subflow, ByteView frames, const Route& from, Ecn ecn) {
      Packet datagram = pool.allocate();
      PacketNumber pn = numbers[subflow.value()]++;
      uint8_t* out = datagram.append(kHeaderSize + frames.size() + kTagSize);
      DatagramHeader header{kWireVersion, peer.epochBits(), 7, subflow,
                            static_cast<uint32_t>(pn.value())};
      writeHeader(header, out);
      CHECK(peer.seal(subflow, pn, {out, kHeaderSize}, {&frames, 1}, out + kHeaderSize));
      session.onDatagram(header, from, ecn, std::move(datagram), now);
    };
    if (size % 4 > 1) {
      ParamsFrame params;
      params.params.lanes = Params::kPacketLane | Params::kStreamLane;
      params.params.streams = 8;
      params.params.streamCredit = 20000;
      say(SubflowId(0), test::framesOf(params), {1, {}, *Endpoint::parse("192.0.2.1:1")},
          Ecn::kNotEct);
    }
    while (in.remaining() > 4) {
      SubflowId subflow(in.u8());
      uint8_t how = in.u8();
      size_t length = in.u16() % 1400;
      ByteView frames = in.take(std::min(length, in.remaining()));
      if (frames.empty()) continue;
      now += Duration(how & 0x70) * 100000;
      Route from{1, {}, *Endpoint::parse(how & 4 ? "192.0.2.1:1" : "192.0.2.2:2")};
      say(subflow, frames, from, static_cast<Ecn>(how & 3));
      if (how & 0x80) driver.act(frames[0], frames.back(), now);
      if (how & 8) {
        uint8_t bytes[100] = {0x45};
        session.onInnerPacket(pool.copy(bytes), FlowKey{Address::Family::kV4, how}, how & 0x10,
                              false, now);
      }
      if (session.nextDeadline(now) <= now) session.onTimer(now);
      drain(session, packets, now);
      driver.listen();
    }
    for (int i = 0; i < 50; ++i) {
      Time next = session.nextDeadline(now);
      if (next == kNever) break;
      now = std::max(now, next);
      session.onTimer(now);
      drain(session, packets, now);
      driver.listen();
    }
    session.streams().endAll(StreamCause::kGone, false);
    driver.listen();
    CHECK(registry.size() == 0);
  }
  CHECK(pool.inUse() == 0);
}
