// Random sequences of StreamApi at both ends of a tunnel: two gateways, joined by a pipe that
// loses, delays, reorders and repeats their datagrams, and drivers that open, write, read, finish
// and reset streams in any order, also streams that have ended.
//
// What each driver reads must be what the other wrote, in order; a stream ends once, by its end in
// both directions or by a reset; the bounds on streams and memory hold; and once the pipe is good
// again and everything is read and finished, all streams end and hold no memory.
//
// Input: a byte of settings, then steps of three bytes: an action, the stream or the pipe that it
// is about, and how much.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "simnet/fake_handshake.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tunnel/tunnel.h"

namespace {

using namespace braid;

constexpr uint16_t kPort = 4433;
constexpr uint16_t kFirstSource = 1024;  // source port of the first stream
constexpr size_t kMostStreams = 8, kMostLines = 64;
constexpr size_t kHeldBytes = 60000;
constexpr size_t kSockets = 2;  // of the initiator
constexpr size_t kEventsOfStep = 64, kEventsToEnd = 6000;

enum Setting : uint8_t {
  kSmallPools = 1,  ///< buffers are short
  kFewOpenings = 2,
  kRekeys = 4,
  kSmallCredit = 8,
  kParities = 16,  ///< a recovery policy that sends parities
};

uint8_t byteAt(size_t line, size_t side, uint64_t offset) {
  return static_cast<uint8_t>((line * 131 + side * 31 + offset) * 2654435761u >> 11);
}

/// What the driver at one end knows of a stream.
struct Half {
  StreamHandle handle;
  uint64_t written = 0, read = 0;
  bool finished = false, over = false, answered = false;
};

/// A stream, by side.
struct Line {
  size_t opener = 0;
  bool asks = false;
  std::array<Half, 2> at;
};

struct Pipe {
  double loss = 0, repeats = 0;
  Duration delay = 5ms, jitter{};
};

/// A datagram on its way to `to`.
struct Flight {
  size_t to = 0;
  Route from;
  std::vector<uint8_t> bytes;
};

class Play {
 public:
  explicit Play(ByteView input) : in_(input), settings_(in_.u8()), random_(settings_) {
    for (size_t side : {0, 1}) {
      pools_[side] = std::make_unique<PacketPool>(2048, has(kSmallPools) ? 160 : 1024);
      const auto number = static_cast<unsigned>(side);
      handshakes_[side] = std::make_unique<sim::FakeHandshakeProvider>(sim::pinOf(number), side);
      ends_[side] = std::make_unique<Tunnel>(options(), *pools_[side], *handshakes_[side],
                                             knownKey(static_cast<uint8_t>(side)));
      ends_[side]->setPeers({peerOf(side)}, now_);
    }
    UplinkSpec uplink{"wifi", {}};
    for (SocketId socket = 1; socket <= kSockets; ++socket)
      uplink.sockets.push_back({socket, Address::Family::kV4});
    ends_[0]->setUplinks({uplink}, now_);
    pump();
    for (size_t n = 0; n < 500 && !isUp(); ++n) advance(now_ + 10s);
    CHECK(isUp());
  }

  void run() {
    while (in_.remaining() > 0) {
      const uint8_t what = in_.u8(), which = in_.u8(), much = in_.u8();
      step(what, which, much);
      pump();
      look();
    }
    end();
  }

 private:
  bool has(Setting setting) const { return (settings_ & setting) != 0; }
  TunnelOptions options() const {
    TunnelOptions o;
    o.holdBytes = 64 << 10;
    o.recovery = has(kParities) ? "proactive" : "adaptive";
    if (has(kRekeys)) o.rekeyPackets = 32;
    o.streams.on = true;
    o.streams.most = kMostStreams;
    o.streams.newPerSecond = has(kFewOpenings) ? 2 : 512;
    o.streams.firstUpload = has(kSmallCredit) ? 2000 : 16000;
    o.streams.firstCredit = has(kSmallCredit) ? 3000 : 20000;
    o.streams.mostCredit = 50000;
    o.streams.queuedBytes = 20000;
    o.streams.heldBytes = o.streams.allHeldBytes = kHeldBytes;
    return o;
  }
  static PeerOptions peerOf(size_t side) {
    PeerOptions peer;
    peer.name = side == 0 ? "hub" : "edge";
    peer.pin = sim::pinOf(static_cast<unsigned>(1 - side));
    peer.prefixes = {*Prefix::parse(side == 0 ? "10.1.0.0/16" : "10.0.0.0/16")};
    if (side == 0) peer.endpoints = {{addressOf(1), kPort}};
    return peer;
  }
  static Address addressOf(size_t side) {
    return *Address::parse("192.0.2." + std::to_string(side + 1));
  }
  static Endpoint hostOf(size_t side, uint16_t port) {
    return {*Address::parse("10." + std::to_string(side) + ".0.1"), port};
  }
  bool isUp() const {
    return ends_[0]->answers() && ends_[1]->answers() && !ends_[1]->peersUp().empty();
  }

  // ---- the pipe and time

  /// The initiator's socket has a port of its own; the responder has one socket.
  static Route arriving(size_t from, const Route& sent) {
    if (from == 0) return {1, {}, {addressOf(0), static_cast<uint16_t>(kPort + sent.socket)}};
    return {static_cast<SocketId>(sent.remote.port - kPort), {}, {addressOf(1), kPort}};
  }
  void send(size_t from, const Datagram& datagram) {
    const Pipe& pipe = pipes_[from];
    for (bool again = true; again; again = random_.chance(pipe.repeats)) {
      if (random_.chance(pipe.loss)) continue;
      const auto jitter = static_cast<uint64_t>(pipe.jitter.count());
      ByteView bytes = datagram.bytes.view();
      flights_.emplace(
          now_ + pipe.delay + Duration(random_.below(jitter + 1)),
          Flight{1 - from, arriving(from, datagram.route), {bytes.begin(), bytes.end()}});
    }
  }
  /// Sends what there is to send, and tells the drivers what happened, until nothing does.
  void pump() {
    for (size_t side : {0, 1}) {
      size_t count = 0;
      for (Datagram d; ends_[side]->pollDatagram(d, now_);) {
        CHECK(++count < 10000);
        CHECK(!d.bytes.empty() && d.bytes.size() <= 1472);
        send(side, d);
      }
      for (Event e; ends_[side]->pollEvent(e);) CHECK(!e.text.empty());
      listen(side);
    }
  }
  /// Lets time pass until the next datagram or timer, at most until `until`.
  void advance(Time until) {
    Time next = flights_.empty() ? until : std::min(until, flights_.begin()->first);
    for (const auto& end : ends_) next = std::min(next, end->nextDeadline());
    now_ = std::max(now_, next);
    for (auto& end : ends_)
      if (end->nextDeadline() <= now_) end->onTimer(now_);
    while (!flights_.empty() && flights_.begin()->first <= now_) {
      Flight flight = std::move(flights_.begin()->second);
      flights_.erase(flights_.begin());
      if (Packet packet = pools_[flight.to]->copy(flight.bytes))
        ends_[flight.to]->onDatagram(flight.from, Ecn::kNotEct, std::move(packet), now_);
    }
    pump();
  }

  // ---- the drivers

  void step(uint8_t what, uint8_t which, uint8_t much) {
    const size_t side = which & 1, line = lines_.empty() ? 0 : (which >> 1) % lines_.size();
    Pipe& pipe = pipes_[side];
    switch (what % 12) {
      case 0:
        return open(side, (which & 2) != 0);
      case 1:
      case 2:
        return write(side, line, size_t{much} * much, what % 2 == 0);
      case 3:
      case 4:
        return read(side, line, size_t{much} * much);
      case 5:
        return finish(side, line);
      case 6:
        if (much < 200) return;  // streams live long enough to carry bytes
        return reset(side, line, static_cast<StreamCause>(much % kStreamCauses));
      case 7:
        if (Half* half = halfOf(side, line)) ends_[side]->streams().answer(half->handle);
        return;
      case 8:
        pipe.loss = which & 2 ? much / 255.0 : much / 2550.0;
        pipe.repeats = which & 4 ? 0.3 : 0;
        return;
      case 9:
        pipe.delay = 1ms * much;
        pipe.jitter = which & 2 ? pipe.delay : Duration{};
        return;
      default:
        const Time until = now_ + 1us * (int64_t{1} << much % 24);
        for (size_t n = 0; n < kEventsOfStep && now_ < until; ++n) advance(until);
    }
  }
  Half* halfOf(size_t side, size_t line) {
    if (line >= lines_.size() || !lines_[line].at[side].handle) return nullptr;
    return &lines_[line].at[side];
  }
  void open(size_t side, bool asks) {
    if (lines_.size() == kMostLines) return;
    StreamApi& api = ends_[side]->streams();
    const StreamEnds ends{hostOf(side, static_cast<uint16_t>(kFirstSource + lines_.size())),
                          hostOf(1 - side, 443)};
    const bool mayAsk = api.canAsk(ends.destination.address);
    StreamHandle handle = asks ? api.openAsking(ends, now_) : api.open(ends, now_);
    if (!handle) return;
    CHECK(mayAsk || !asks);
    lines_.push_back({side, asks, {}});
    meet(side, handle, lines_.size() - 1);
  }
  void meet(size_t side, StreamHandle handle, size_t line) {
    CHECK(!lines_[line].at[side].handle);
    lines_[line].at[side].handle = handle;
    CHECK(byHandle_[side].emplace(handle, line).second);
  }
  /// The driver of the side that did not open it answers first.
  void accept(size_t side, Line& line) {
    if (side != line.opener) ends_[side]->streams().answer(line.at[side].handle);
  }
  void write(size_t side, size_t line, size_t size, bool inPlace) {
    Half* half = halfOf(side, line);
    if (!half) return;
    accept(side, lines_[line]);
    StreamApi& api = ends_[side]->streams();
    const size_t may = api.writable(half->handle, size);
    CHECK(may == 0 || (!half->over && !half->finished));
    size_t taken = 0;
    if (inPlace) {
      std::array<ByteSpan, 4> buffers;
      const size_t count = api.room(half->handle, buffers);
      CHECK(count <= buffers.size());
      for (size_t i = 0; i < count && taken < size; ++i)
        for (uint8_t& byte : buffers[i].first(std::min(buffers[i].size(), size - taken)))
          byte = byteAt(line, side, half->written + taken++);
      api.commit(half->handle, taken, now_);
    } else {
      std::vector<uint8_t> bytes(size);
      for (size_t i = 0; i < size; ++i) bytes[i] = byteAt(line, side, half->written + i);
      taken = api.write(half->handle, bytes, now_);
    }
    CHECK(taken <= may);
    half->written += taken;
  }
  void read(size_t side, size_t line, size_t most) {
    Half* half = halfOf(side, line);
    if (!half) return;
    accept(side, lines_[line]);
    const Half& other = lines_[line].at[1 - side];
    StreamApi& api = ends_[side]->streams();
    const size_t readable = api.readable(half->handle);
    CHECK(readable == 0 || !half->over);
    while (most > 0 && !half->over) {
      std::array<ByteView, 4> views;
      const size_t count = api.peek(half->handle, views);
      size_t taken = 0;
      for (size_t i = 0; i < count && taken < most; ++i)
        for (uint8_t byte : views[i].first(std::min(views[i].size(), most - taken)))
          CHECK(byte == byteAt(line, 1 - side, half->read + taken++));
      if (taken == 0) break;
      half->read += taken;
      most -= taken;
      CHECK(half->read <= other.written);
      if (api.isAtEnd(half->handle)) CHECK(other.finished && half->read == other.written);
      api.consume(half->handle, taken, now_);
    }
  }
  void finish(size_t side, size_t line) {
    Half* half = halfOf(side, line);
    if (!half) return;
    accept(side, lines_[line]);
    half->finished = true;
    ends_[side]->streams().finish(half->handle, now_);
  }
  void reset(size_t side, size_t line, StreamCause cause) {
    Half* half = halfOf(side, line);
    if (!half) return;
    // An end that the driver was not told yet is not told any more.
    half->over = true;
    StreamApi& api = ends_[side]->streams();
    api.reset(half->handle, cause, now_);
    CHECK(!api.ends(half->handle) && !api.isAtEnd(half->handle));
  }
  void listen(size_t side) {
    StreamApi& api = ends_[side]->streams();
    size_t count = 0;
    for (StreamEvent event; api.pollStream(event);) {
      CHECK(++count < 10000);
      if (event.opened) {
        const StreamEnds* ends = api.ends(event.stream);
        CHECK(ends && ends->destination == hostOf(side, 443));
        const size_t line = ends->source.port - size_t{kFirstSource};
        CHECK(line < lines_.size() && lines_[line].opener != side);
        CHECK(ends->source == hostOf(1 - side, ends->source.port));
        meet(side, event.stream, line);
      }
      auto known = byHandle_[side].find(event.stream);
      CHECK(known != byHandle_[side].end());
      Line& line = lines_[known->second];
      Half &half = line.at[side], &other = line.at[1 - side];
      CHECK(!half.over);
      if (event.answered) CHECK(line.asks && line.opener == side && !half.answered);
      half.answered |= event.answered;
      CHECK(!(event.done && event.reset));
      if (event.done) CHECK(half.finished && other.finished && half.read == other.written);
      half.over = event.done || event.reset;
      CHECK((api.ends(event.stream) == nullptr) == half.over);
    }
  }
  void look() {
    for (size_t side : {0, 1}) {
      const PeerStatus status = ends_[side]->peerStatus(0, now_);
      CHECK(status.streamCount <= kMostStreams);
      CHECK(status.streamsHeldBytes <= kHeldBytes);
      CHECK(pools_[side]->quota(PacketUse::kHeld).used() <= kHeldBytes / pools_[side]->payload());
    }
  }

  // ---- the end

  bool allOver() const {
    return std::ranges::all_of(lines_, [](const Line& line) {
      return std::ranges::all_of(line.at,
                                 [](const Half& half) { return !half.handle || half.over; });
    });
  }
  void end() {
    pipes_ = {};
    for (size_t n = 0; !allOver(); ++n) {
      CHECK(n < kEventsToEnd);
      for (size_t line = 0; line < lines_.size(); ++line)
        for (size_t side : {0, 1})
          if (Half* half = halfOf(side, line); half && !half->over) {
            read(side, line, SIZE_MAX);
            if (!half->finished) finish(side, line);
          }
      pump();
      if (!allOver()) advance(now_ + 10s);
    }
    for (Time until = now_ + 10s; now_ < until;) advance(until);
    for (size_t side : {0, 1}) {
      const PeerStatus status = ends_[side]->peerStatus(0, now_);
      CHECK(status.streamCount == 0 && status.streamsHeldBytes == 0);
      for (PacketUse use : {PacketUse::kHeld, PacketUse::kSent, PacketUse::kQueued})
        CHECK(pools_[side]->quota(use).used() == 0);
      for (const auto& [handle, line] : byHandle_[side]) {
        StreamApi& api = ends_[side]->streams();
        CHECK(!api.ends(handle) && api.readable(handle) == 0 && api.writable(handle, 1) == 0);
      }
    }
    for (size_t side : {0, 1}) {
      ends_[side].reset();
      CHECK(pools_[side]->inUse() == 0);
    }
  }

  Reader in_;
  const uint8_t settings_;
  Random random_;
  Time now_ = Time{} + 1h;
  std::array<Pipe, 2> pipes_;  ///< by sender
  std::multimap<Time, Flight> flights_;
  std::array<std::unique_ptr<PacketPool>, 2> pools_;
  std::array<std::unique_ptr<sim::FakeHandshakeProvider>, 2> handshakes_;
  std::array<std::unique_ptr<Tunnel>, 2> ends_;
  std::vector<Line> lines_;
  std::array<std::map<StreamHandle, size_t>, 2> byHandle_;
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  Play({data, size}).run();
}
