#include "simnet/fake_handshake.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace braid::sim {

namespace {

// RFC 6347 section 4.1 and 4.2.2.
constexpr uint8_t kHandshakeRecord = 22;
constexpr size_t kRecordHeader = 13;
constexpr size_t kCheck = 8;
constexpr size_t kHelloSize = 180;
enum Type : uint8_t {
  kNone = 0,
  kHello = 1,
  kServer = 2,
  kInitiatorDone = 16,
  kResponderDone = 20
};

uint64_t mix(uint64_t a, uint64_t b) {
  return Random(a ^ (b * 0x9e3779b97f4a7c15)).next() + b;
}

uint64_t hashBytes(ByteView bytes, uint64_t h) {
  for (uint8_t b : bytes) h = (h ^ b) * 0x100000001b3;
  return mix(h, bytes.size());
}

struct Message {
  Type type = kHello;
  uint64_t initiatorNonce = 0;
  uint64_t responderNonce = 0;
  Pin initiator{};
  Pin responder{};
  std::vector<ProtocolVersion>
      versions;  ///< in a HELLO the offered versions, in other messages the chosen one
};
constexpr size_t kMostVersions = 8;

void write(const Message& m, size_t padTo, Packet& out) {
  std::array<uint8_t, 256> bytes{};
  Writer w(bytes);
  w.u8(kHandshakeRecord);
  w.u16(0xfefd);
  w.u16(0);  // epoch
  w.zeros(6);
  w.u16(0);  // length, set below
  w.u8(m.type);
  w.u64(m.initiatorNonce);
  w.u64(m.responderNonce);
  w.bytes(m.initiator);
  w.bytes(m.responder);
  w.u8(static_cast<uint8_t>(m.versions.size()));
  w.bytes(m.versions);
  if (w.size() + kCheck < padTo) w.zeros(padTo - kCheck - w.size());
  store16(&bytes[11], static_cast<uint16_t>(w.size() + kCheck - kRecordHeader));
  w.u64(hashBytes(ByteView(bytes).first(w.size()), 0xb4a1d));
  out.setSize(0);
  std::copy_n(bytes.begin(), w.size(), out.append(w.size()));
}

std::optional<Message> read(ByteView bytes) {
  if (bytes.size() < kRecordHeader + 1 + kCheck || bytes[0] != kHandshakeRecord)
    return std::nullopt;
  size_t body = bytes.size() - kCheck;
  if (load64(&bytes[body]) != hashBytes(bytes.first(body), 0xb4a1d)) return std::nullopt;
  Reader r(bytes.subspan(kRecordHeader, body - kRecordHeader));
  Message m;
  m.type = static_cast<Type>(r.u8());
  m.initiatorNonce = r.u64();
  m.responderNonce = r.u64();
  ByteView initiator = r.take(32);
  ByteView responder = r.take(32);
  ByteView versions = r.take(r.u8());
  if (!r.ok() || versions.size() > kMostVersions) return std::nullopt;
  m.versions.assign(versions.begin(), versions.end());
  std::copy(initiator.begin(), initiator.end(), m.initiator.begin());
  std::copy(responder.begin(), responder.end(), m.responder.begin());
  return m;
}

class FakeHandshake final : public Handshake {
 public:
  /// `provider`: set for a responder, which asks it whether to accept a peer.
  FakeHandshake(const FakeHandshakeProvider* provider, const Message& first, Time now)
      : provider_(provider), message_(first), patience_(now) {}

  void onDatagram(ByteView bytes, Time now) override;
  // As DtlsHandshake: the flight under way keeps its timer.
  void onFirstAnswer(Duration least, Duration most, Time now) override {
    patience_.onAnswer(most, now);
    firstWait_ = std::max<Duration>(firstWait_, least * 3 / 2);
  }
  void onTimer(Time now) override {
    if (state_ != State::kRunning) return;
    if (now >= patience_.end()) return fail("timed out");
    if (now < retransmitAt_) return;
    wait_ *= 2;
    pending_ = true;
    retransmitAt_ = now + wait_;
  }
  bool pollDatagram(Packet& out) override {
    if (!pending_) return false;
    write(message_, message_.type == kHello ? kHelloSize : 0, out);
    pending_ = false;
    return true;
  }
  Time deadline() const override {
    if (state_ != State::kRunning) return kNever;
    return std::min(retransmitAt_, patience_.end());
  }
  State state() const override { return state_; }
  const SessionSecrets& secrets() const override { return secrets_; }
  void forgetSecrets() override { secrets_.erase(); }
  std::string_view error() const override { return error_; }

  void fail(std::string why) {
    state_ = State::kFailed;
    pending_ = false;
    error_ = std::move(why);
  }
  /// Begins the next flight.
  void send(Type type, Time now) {
    message_.type = type;
    pending_ = true;
    wait_ = firstWait_;
    retransmitAt_ = now + wait_;
  }

 private:
  void onInitiator(const Message& m, Time now);
  void onResponder(const Message& m, Time now);
  void finish();

  const FakeHandshakeProvider* provider_;
  Message message_;  // the last flight sent
  HandshakePatience patience_;
  Time retransmitAt_ = kNever;
  Duration firstWait_ = FakeHandshakeProvider::kRetransmit;
  Duration wait_{};
  State state_ = State::kRunning;
  bool pending_ = false;
  SessionSecrets secrets_;
  std::string error_;
};

void FakeHandshake::onDatagram(ByteView bytes, Time now) {
  std::optional<Message> m = read(bytes);
  if (!m || state_ == State::kFailed) return;
  bool isFirst = provider_ && message_.type == kNone && m->type == kHello;
  if (!isFirst && m->initiatorNonce != message_.initiatorNonce) return;
  provider_ ? onResponder(*m, now) : onInitiator(*m, now);
}

void FakeHandshake::onInitiator(const Message& m, Time now) {
  if (state_ == State::kDone) return;
  if (m.type == kServer && message_.type == kHello) {
    if (m.responder != message_.responder) return fail("the peer's certificate has another pin");
    message_.responderNonce = m.responderNonce;
    std::optional<ProtocolVersion> chosen = highestCommon(message_.versions, m.versions);
    if (!chosen || m.versions.size() != 1)
      return fail("the peer chose a version that was not offered");
    message_.versions = m.versions;
    return send(kInitiatorDone, now);
  }
  if (m.type == kResponderDone && m.responderNonce == message_.responderNonce) finish();
}

void FakeHandshake::onResponder(const Message& m, Time now) {
  if (m.type == kHello && state_ == State::kRunning) {
    message_.initiatorNonce = m.initiatorNonce;
    message_.initiator = m.initiator;
    if (!provider_->accepts(m.initiator)) return fail("no peer has this certificate");
    std::optional<ProtocolVersion> version = highestCommon(provider_->versions(), m.versions);
    if (!version) return fail("no version in common");
    message_.versions = {*version};
    send(kServer, now);
  }
  if (m.type != kInitiatorDone || m.responderNonce != message_.responderNonce) return;
  send(kResponderDone, now);
  if (state_ == State::kRunning) finish();
}

void FakeHandshake::finish() {
  uint64_t seed = hashBytes(message_.initiator, message_.initiatorNonce);
  seed = hashBytes(message_.responder, mix(seed, message_.responderNonce));
  Random random(seed);
  auto fill = [&](std::array<uint8_t, 32>& out) {
    for (size_t i = 0; i < out.size(); i += 8) store64(&out[i], random.next());
  };
  fill(secrets_.initiatorSecret);
  fill(secrets_.responderSecret);
  secrets_.sessionId = static_cast<uint32_t>(random.next());
  secrets_.version = message_.versions.front();
  secrets_.peer = provider_ ? message_.initiator : message_.responder;
  state_ = State::kDone;
}

}  // namespace

Pin pinOf(unsigned number) {
  Pin pin{};
  Random random(0x91a5 + number);
  for (size_t i = 0; i < pin.size(); i += 8) store64(&pin[i], random.next());
  return pin;
}

FakeHandshakeProvider::FakeHandshakeProvider(const Pin& own, uint64_t seed)
    : own_(own), random_(seed) {}

std::unique_ptr<Handshake> FakeHandshakeProvider::initiate(const Pin& peer, Time now) {
  Message m;
  m.initiatorNonce = random_.next();
  m.initiator = own_;
  m.responder = peer;
  m.versions = versions_;
  auto handshake = std::make_unique<FakeHandshake>(nullptr, m, now);
  handshake->send(kHello, now);
  return handshake;
}

std::unique_ptr<Handshake> FakeHandshakeProvider::accept(Time now) {
  ++acceptedCount_;
  Message m;
  m.type = kNone;
  m.responderNonce = random_.next();
  m.responder = own_;
  return std::make_unique<FakeHandshake>(this, m, now);
}

bool FakeHandshakeProvider::accepts(const Pin& pin) const {
  return std::ranges::find(accepted_, pin) != accepted_.end();
}

}  // namespace braid::sim
