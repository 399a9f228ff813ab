// A whole tunnel between two peers that have its keys but break all rules: Tunnel::onDatagram as
// responder and as initiator, in all epochs, with packets (TUN) and with Ethernet frames that are
// bridged between the peers (TAP).
//
// Input: a byte of settings, then steps. A step has a byte for the action, a byte for the peer, and
// the action's arguments. Both peers have completed their handshakes before. With streams, the
// driver opens, writes, reads, finishes and resets streams, and the peers open theirs from any
// address. The driver's orders (another configuration, a reload, a resumed machine) come in
// between.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "simnet/fake_handshake.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/raw_peer.h"
#include "tunnel/peer/accepting.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/tunnel.h"
#include "tunnel/wire/handshake_envelope.h"

namespace {

using namespace braid;
using Bytes = std::vector<uint8_t>;

constexpr unsigned kGateway = 0;
constexpr SocketId kSocket = 1;

enum Setting : uint8_t {
  kTapMode = 1,    ///< else TUN
  kInitiates = 2,  ///< the gateway initiates; else its peers do
  kAnswers = 4,    ///< the peers answer challenges
  kAcks = 8,       ///< the peers acknowledge
  kFree = 16,      ///< the second peer has no prefixes
  kRekeys = 32,    ///< the gateway often begins a new epoch
  kStreams = 64,   ///< both sides know streams
};

// The peer on the other side: a real handshake, then a session played by the fuzzer.
class Puppet {
 public:
  Puppet(unsigned number, bool initiates, Time now)
      : route({kSocket, {}, *Endpoint::parse("192.0.2." + std::to_string(number) + ":4433")}),
        pin(sim::pinOf(number)),
        secrets_(knownKey(number)),
        provider_(pin, number) {
    provider_.setAcceptedPins({sim::pinOf(kGateway)});
    if (initiates)
      initiator_ =
          std::make_unique<ClientHandshake>(provider_, secrets_, sim::pinOf(kGateway), now);
    else
      handshakeServer_ = std::make_unique<HandshakeServer>(pool_, provider_, secrets_);
  }

  const Route route;
  const Pin pin;

  bool isReady() const { return raw_.has_value(); }
  /// Sends the datagrams of its handshake.
  std::vector<Bytes> shake(Time now) {
    std::vector<Bytes> said;
    if (initiator_) {
      initiator_->onTimer(now);
      for (Packet p = pool_.allocate(); initiator_->pollDatagram(p); p = pool_.allocate())
        said.emplace_back(p.view().begin(), p.view().end());
      if (initiator_->handshake().state() == Handshake::State::kDone)
        begin(initiator_->handshake().secrets(), KeySchedule::Role::kInitiator, now);
    } else {
      for (Datagram d; handshakeServer_->pollDatagram(d);)
        said.emplace_back(d.bytes.view().begin(), d.bytes.view().end());
      for (HandshakeServer::Outcome o; handshakeServer_->pollOutcome(o);) {
        if (o.secrets) begin(*o.secrets, KeySchedule::Role::kResponder, now);
      }
    }
    return said;
  }
  /// Takes a handshake datagram of the gateway.
  void hear(Datagram& d, Time now) {
    if (initiator_)
      initiator_->onDatagram(d.bytes.view(), now);
    else
      handshakeServer_->onDatagram(route, d.bytes.span(), now);
  }
  std::optional<test::RawPeer::Opened> open(Datagram& d, Time now) { return raw_->open(d, now); }
  Packet seal(SubflowId subflow, PacketNumber pn, ByteView frames, PacketPool& pool) {
    return raw_->seal(subflow, pn, frames, pool);
  }
  void rekey(Time now) {
    raw_->onTimer(now);
    raw_->rekey(now);
  }
  /// The notices about its session that a responder may send.
  const std::optional<RestartNotice>& restartNotice() const { return restart_; }
  const std::optional<KeyNotice>& keyNotice() const { return key_; }
  PacketNumber& next(SubflowId subflow) { return numbers_[subflow.value()]; }
  uint32_t& nextDsn(uint16_t flow) { return dsns_[flow]; }

 private:
  void begin(const SessionSecrets& secrets, KeySchedule::Role role, Time now) {
    if (raw_) return;
    raw_.emplace(secrets, role, now);
    restart_ = restartNoticeOf(secrets);
    key_ = keyNoticeOf(secrets);
  }

  PacketPool pool_{2048, 512};
  SecretRandom secrets_;
  sim::FakeHandshakeProvider provider_;
  std::unique_ptr<ClientHandshake> initiator_;
  std::unique_ptr<HandshakeServer> handshakeServer_;
  std::optional<test::RawPeer> raw_;
  std::optional<RestartNotice> restart_;
  std::optional<KeyNotice> key_;
  std::array<PacketNumber, 256> numbers_{};
  std::map<uint16_t, uint32_t> dsns_;
};

class World {
 public:
  explicit World(ByteView input) : in_(input), settings_(in_.u8()) {
    const bool peersBegin = !has(kInitiates);
    for (unsigned i = 0; i < puppets_.size(); ++i)
      puppets_[i] = std::make_unique<Puppet>(i + 1, peersBegin, now_);
    tunnel_ = std::make_unique<Tunnel>(options(), pool_, handshakes_, knownKey(1));
    tunnel_->setPeers(peers(), now_);
    if (!peersBegin) tunnel_->setUplinks({uplink()}, now_);
    shakeHands();
  }

  void run() {
    while (in_.remaining() > 0) {
      const uint8_t what = in_.u8(), who = in_.u8();
      step(what, who);
    }
    for (int i = 0; i < 50 && tunnel_->nextDeadline() != kNever; ++i) pass(untilDeadline());
    tunnel_->status(now_, 64);
    for (StreamHandle stream : streams_)
      tunnel_->streams().reset(stream, StreamCause::kReset, now_);
    tunnel_->close();
    drain();
    tunnel_.reset();
    last_.bytes.reset();
    CHECK(pool_.inUse() == 0);
  }

 private:
  bool has(Setting setting) const { return (settings_ & setting) != 0; }
  TunnelOptions options() const {
    TunnelOptions o;
    o.mode = has(kTapMode) ? TunnelOptions::Mode::kTap : TunnelOptions::Mode::kTun;
    o.holdBytes = 64 << 10;
    if (has(kRekeys)) o.rekeyPackets = 4;
    o.streams.on = has(kStreams);
    o.streams.most = 20;
    o.streams.heldBytes = 60000;
    o.streams.allHeldBytes = 100000;
    return o;
  }
  std::vector<PeerOptions> peers() const {
    std::vector<PeerOptions> all(puppets_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      all[i].name = "peer" + number;
      all[i].pin = puppets_[i]->pin;
      if (has(kInitiates)) all[i].endpoints = {puppets_[i]->route.remote};
      if (i == 0 || !has(kFree))
        all[i].prefixes = {*Prefix::parse("10." + number + ".0.0/16"),
                           *Prefix::parse("fd00:" + number + "::/32")};
    }
    return all;
  }
  static UplinkSpec uplink() { return {"wifi", {{kSocket, Address::Family::kV4}}}; }
  void shakeHands() {
    auto ready = [](const auto& puppet) { return puppet->isReady(); };
    for (int round = 0; round < 100 && !std::ranges::all_of(puppets_, ready); ++round) {
      for (auto& puppet : puppets_)
        for (const Bytes& said : puppet->shake(now_))
          tunnel_->onDatagram(puppet->route, Ecn::kNotEct, pool_.copy(said), now_);
      drain();
      now_ += 10ms;
      tunnel_->onTimer(now_);
    }
    CHECK(std::ranges::all_of(puppets_, ready));
    // The first datagram tells a responder that its session was chosen.
    for (auto& puppet : puppets_) {
      Bytes frames = test::framesOf(PathChallengeFrame{PathToken{7}});
      frames.resize(1200 - kHeaderSize - kTagSize);  // PADDING
      say(*puppet, SubflowId(0), frames);
      if (!has(kStreams)) continue;
      ParamsFrame params;
      params.params.lanes = Params::kPacketLane | Params::kStreamLane;
      params.params.streams = 8;
      params.params.streamCredit = 20000;
      say(*puppet, SubflowId(0), test::framesOf(params));
    }
    drain();
  }

  void say(Puppet& puppet, SubflowId subflow, ByteView frames, Ecn ecn = Ecn::kNotEct,
           uint16_t portOffset = 0) {
    PacketNumber pn = puppet.next(subflow)++;
    Packet datagram = puppet.seal(subflow, pn, frames, pool_);
    Route from = puppet.route;
    from.remote.port = static_cast<uint16_t>(from.remote.port + portOffset);
    if (datagram) tunnel_->onDatagram(from, ecn, std::move(datagram), now_);
    takeStreams(puppet);
  }
  ByteView take(size_t most) {
    const size_t size = in_.u16() % most;
    return in_.take(std::min(size, in_.remaining()));
  }
  void fromDevice(ByteView bytes) {
    if (Packet packet = pool_.copy(bytes)) tunnel_->onInnerPacket(std::move(packet), now_);
  }
  Duration untilDeadline() const {
    Time next = tunnel_->nextDeadline();
    return next > now_ ? next - now_ : 0ns;
  }
  void pass(Duration time) {
    now_ += time;
    tunnel_->onTimer(now_);
    drain();
  }

  void step(uint8_t what, uint8_t who) {
    Puppet& puppet = *puppets_[who & 1];
    const SubflowId subflow(who >> 1 & 3);
    const auto ecn = static_cast<Ecn>(who >> 3 & 3);
    const uint16_t moved = who >> 5 & 1;
    switch (what % 10) {
      case 0:  // a stranger's datagram
        if (Packet packet = pool_.copy(take(1400)))
          tunnel_->onDatagram(puppet.route, ecn, std::move(packet), now_);
        break;
      case 1:  // any frames
        if (ByteView frames = take(1400); !frames.empty()) say(puppet, subflow, frames, ecn, moved);
        break;
      case 2:  // an inner packet that is the next of its flow
      case 3: {
        const uint16_t flow = in_.u16();
        ByteView inner = take(1400);
        if (inner.empty()) break;
        Bytes frames(kDataFrameHeader);
        writeDataHeader(FlowNumber(flow), Dsn(puppet.nextDsn(flow)++), inner.size(), frames.data());
        frames.insert(frames.end(), inner.begin(), inner.end());
        say(puppet, subflow, frames, ecn, moved);
        break;
      }
      case 4:
        fromDevice(take(1600));
        break;
      case 5:
        pass(1us * (int64_t{1} << (who % 25)));
        break;
      case 6:
        pass(std::min<Duration>(untilDeadline(), 10s));
        break;
      case 7:
        puppet.rekey(now_);
        break;
      case 8:  // packet numbers that were lost
        puppet.next(subflow) += in_.u16() % 5000;
        break;
      default:
        if (has(kStreams) && (who & 0x40)) {
          const uint8_t act = in_.u8(), which = in_.u8();
          stream(act, which);
          break;
        }
        if ((who & 0x20) && orders_ > 0) {
          --orders_;
          order(who & 0x1f, puppet);
          break;
        }
        if (last_.bytes)
          who & 0x80 ? tunnel_->onTooBig(last_, now_) : tunnel_->onSendError(last_, now_);
        break;
    }
    drain();
  }

  /// What a driver or a responder does seldom.
  void order(uint8_t what, const Puppet& puppet) {
    switch (what / 2 % 12) {
      case 0:
        tunnel_->setPeers(peers(), now_);
        break;
      case 1:
        tunnel_->setPeers({peers()[0]}, now_);
        tunnel_->setPeers(peers(), now_);
        break;
      case 2: {
        TunnelOptions other = options();
        other.rekeyPackets = 8;
        other.streams.on = false;
        tunnel_->setTunables(other);
        break;
      }
      case 3:
        tunnel_->setLocalNetworks({*Prefix::parse("10.0.0.0/24")});
        break;
      case 4:
        tunnel_->forgetKeys("a snapshot was resumed",
                            knownKey(100 + now_.time_since_epoch().count()), now_);
        break;
      case 5:
        tunnel_->setListening(false);
        tunnel_->setListening(true);
        break;
      case 6: {
        UplinkSpec metered = uplink();
        metered.meter = {100'000, 50'000};
        tunnel_->setUplinks({metered}, now_);
        break;
      }
      case 7:
        tunnel_->resetMeter("wifi", 0, now_);
        break;
      case 8:
        tunnel_->sendRestartNotices(tunnel_->knownInitiators(now_), now_);
        break;
      case 9:
        notify(puppet);
        break;
      case 10:
        look();
        break;
      default:
        (void)tunnel_->loadTest().start("peer1", {.path = {}, .time = 100ms, .bytes = 20000}, now_);
    }
  }
  void notify(const Puppet& puppet) {
    Packet restart = pool_.allocate(), key = pool_.allocate();
    if (!puppet.isReady() || !restart || !key) return;
    writeRestartNotice(*puppet.restartNotice(), restart);
    writeKeyNotice(*puppet.keyNotice(), key);
    tunnel_->onDatagram(puppet.route, Ecn::kNotEct, std::move(key), now_);
    tunnel_->onDatagram(puppet.route, Ecn::kNotEct, std::move(restart), now_);
  }
  /// The figures agree with each other.
  void look() const {
    CHECK(tunnel_->peerNames().size() == tunnel_->peerCount());
    CHECK(tunnel_->peersUp().size() <= tunnel_->peerCount());
    CHECK(tunnel_->knownInitiators(now_).size() <= tunnel_->peerCount());
    const TunnelStatus all = tunnel_->status(now_, 4);
    CHECK(all.peers.size() == tunnel_->peerCount());
    for (size_t i = 0; i < tunnel_->peerCount(); ++i) {
      const PeerStatus one = tunnel_->peerStatus(i, now_, 4);
      CHECK(one.name == all.peers[i].name && one.up == all.peers[i].up);
    }
    for (const MeterStatus& meter : tunnel_->meters()) CHECK(meter.uplink == "wifi");
    for (const UplinkBytes& carried : tunnel_->carried()) CHECK(carried.uplink == "wifi");
    (void)tunnel_->answers();
    (void)tunnel_->innerMtu();
    (void)tunnel_->loadTest().status(now_);
    (void)tunnel_->loadTest().peer(now_);
  }

  /// An action of the driver of streams.
  void stream(uint8_t what, uint8_t which) {
    StreamApi& lanes = tunnel_->streams();
    if (what % 6 == 0) {
      const std::array<uint8_t, 4> destination{10, static_cast<uint8_t>(1 + which % 3), 0, which};
      const StreamEnds ends{*Endpoint::parse("10.0.0.1:50000"), {Address::v4(destination), 443}};
      if (StreamHandle h = lanes.open(ends, now_)) streams_.push_back(h);
      return;
    }
    if (streams_.empty()) return;
    const StreamHandle chosen = streams_[which % streams_.size()];
    switch (what % 6) {
      case 1:
      case 2:
        lanes.write(chosen, Bytes(1 + which * 40u, which), now_);
        break;
      case 3:
        lanes.consume(chosen, std::min<size_t>(lanes.readable(chosen), 1 + which * 20u), now_);
        break;
      case 4:
        lanes.finish(chosen, now_);
        break;
      default:
        lanes.reset(chosen, static_cast<StreamCause>(which % kStreamCauses), now_);
    }
  }
  /// A stream that a peer opens must come from an address of that peer. For a peer without
  /// prefixes, it must not be an address of the other peer.
  void takeStreams(const Puppet& speaker) {
    size_t count = 0;
    for (StreamEvent e; tunnel_->streams().pollStream(e);) {
      CHECK(++count < 10000);
      if (!e.opened) continue;
      const StreamEnds* ends = tunnel_->streams().ends(e.stream);
      if (!ends) continue;
      for (const PeerOptions& peer : peers()) {
        const bool isOfPeer = std::ranges::any_of(peer.prefixes, [&](const Prefix& prefix) {
          return prefix.contains(ends->source.address);
        });
        const bool isSpeaker = peer.pin == speaker.pin;
        CHECK(peer.prefixes.empty() || isOfPeer == isSpeaker);
      }
      streams_.push_back(e.stream);
    }
  }

  /// The gateway sends and its peers answer as the settings say. Repeats that a few times.
  void drain() {
    for (int round = 0; round < 4; ++round) {
      bool spoke = false;
      size_t count = 0;
      for (Datagram d; tunnel_->pollDatagram(d, now_); spoke = true) {
        CHECK(++count < 100000);
        CHECK(!d.bytes.empty() && d.bytes.size() <= 1472);
        hear(d);
        last_ = std::move(d);
      }
      deliver();
      for (auto& [puppet, subflow, frames] : std::exchange(answers_, {}))
        say(*puppet, subflow, frames);
      if (!spoke) break;
    }
    for (Event e; tunnel_->pollEvent(e);) CHECK(!e.text.empty());
    for (StreamEvent e; tunnel_->streams().pollStream(e);)
      CHECK(!e.opened);  // only by a datagram of a peer
  }
  void hear(Datagram& d) {
    auto meant = std::ranges::find_if(
        puppets_, [&](const auto& p) { return p->route.remote.address == d.route.remote.address; });
    CHECK(meant != puppets_.end());
    Puppet& puppet = **meant;
    if (isHandshakeDatagram(d.bytes.view())) return puppet.hear(d, now_);
    if (!puppet.isReady()) return;
    auto opened = puppet.open(d, now_);
    if (!opened) return;  // of an epoch that the puppet has passed, or of another session
    for (const WireFrame& frame : opened->frames) {
      const auto* challenge = std::get_if<PathChallengeFrame>(&frame);
      if (challenge && has(kAnswers))
        answers_.push_back(
            {&puppet, opened->subflow, test::framesOf(PathResponseFrame{challenge->token})});
    }
    if (!opened->eliciting || !has(kAcks)) return;
    AckFrame ack;
    ack.subflow = opened->subflow;
    ack.count = 1;
    ack.ranges[0] = {opened->pn, opened->pn};
    answers_.push_back({&puppet, opened->subflow, test::framesOf(ack)});
  }
  /// Packets that reach the device must be well-formed, whatever the peers sent.
  void deliver() {
    for (Packet p; tunnel_->pollInnerPacket(p);) {
      if (has(kTapMode)) {
        CHECK(parseFrame(p.view()));
        continue;
      }
      auto ip = parseInnerPacket(p.view());
      CHECK(ip && ip->size == p.size());
    }
  }

  struct Answer {
    Puppet* puppet;
    SubflowId subflow;
    Bytes frames;
  };

  Reader in_;
  const uint8_t settings_;
  size_t orders_ = 64;  ///< that may still come, because some take their time
  Time now_{1h};
  PacketPool pool_{2048, 4096};
  sim::FakeHandshakeProvider handshakes_{sim::pinOf(kGateway), 9};
  std::array<std::unique_ptr<Puppet>, 2> puppets_;
  std::vector<Answer> answers_;
  std::vector<StreamHandle> streams_;
  std::unique_ptr<Tunnel> tunnel_;
  Datagram last_;
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  World({data, size}).run();
}
