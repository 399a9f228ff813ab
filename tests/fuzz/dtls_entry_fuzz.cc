// Hostile handshake datagrams, without their envelope: to a responder, and to an initiator in the
// middle of a handshake.
//
// Input: one byte (even: responder, odd: initiator; the next three bits: the Case), then datagrams,
// each with a 16-bit length and its bytes. Two lengths stand for something else: kPause, kAnswered.
// OpenSSL's randomness and the certificates are fixed, so that a recorded flight stays
// valid and a corpus file can lead through a whole handshake. `fuzz_dtls_entry --record FOLDER`
// rewrites such files (run scripts/fuzz --record after a change of the handshake or an update of
// OpenSSL). `--complete FOLDER` fails when they are stale.

#define OPENSSL_SUPPRESS_DEPRECATED  // RAND_METHOD is the one way to replace randomness for keys
                                     // too
#include <openssl/ec.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/join.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace braid {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Time kNow{1h};

// Replaces OpenSSL's random numbers by fixed ones. Each side draws from its own stream.
class FixedRandom {
 public:
  static void install() {
    static const RAND_METHOD method{nullptr, &FixedRandom::fill, nullptr,
                                    nullptr, &FixedRandom::fill, [] { return 1; }};
    RAND_set_rand_method(&method);
  }
  static Random* stream;

 private:
  static int fill(unsigned char* out, int size) {
    for (int i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(stream->next());
    return 1;
  }
};
Random fallback(0);
Random* FixedRandom::stream = &fallback;

Identity fixedIdentity(uint64_t seed) {
  Random random(seed);
  FixedRandom::stream = &random;
  Identity identity{KeyHandle(EVP_EC_gen("P-256")), CertificateHandle(X509_new()), {}};
  X509* x = identity.certificate.get();
  time_t start = 1700000000;
  X509_set_version(x, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_time_adj_ex(X509_getm_notBefore(x), 0, 0, &start);
  X509_time_adj_ex(X509_getm_notAfter(x), 36525, 0, &start);
  X509_set_pubkey(x, identity.key.get());
  CHECK(X509_sign(x, identity.key.get(), EVP_sha256()) > 0);
  identity.pin = pinOf(x);
  return identity;
}

struct World {
  struct Install {
    Install() { FixedRandom::install(); }
  } install;
  Identity alice = fixedIdentity(1), bob = fixedIdentity(2);
  PacketPool pool{2000, 16};

  static World& get() {
    static World world;
    return world;
  }
};

// What the two sides are set up for.
enum class Case : uint8_t {
  kSession,   ///< a session
  kJoin,      ///< the initiator joins
  kStranger,  ///< the responder does not know the initiator
  kChaCha,    ///< a session with the other kind of cipher
  kVersions,  ///< no version of the protocol in common
  kShut,      ///< the initiator wants to join, which nobody may
  kOtherPin,  ///< the initiator expects somebody else
  kCiphers,   ///< no cipher in common
  kCount
};
constexpr std::array<const char*, static_cast<size_t>(Case::kCount)> kNames{
    "", "_join", "_stranger", "_chacha", "_versions", "_shut", "_pin", "_ciphers"};

// Lengths of no datagram: time passes; the other side's first answer came after a second.
constexpr size_t kPause = 0xffff, kAnswered = 0xfffe;

DtlsOptions fixedOptions(Case what, bool initiator) {
  DtlsOptions options;
  options.hasAes = true;    // the same hello on every machine
  options.retransmit = 1h;  // real time must not interfere
  if (what == Case::kChaCha || (what == Case::kCiphers && initiator))
    options.cipher = AeadKind::kChaCha20Poly1305;
  if (what == Case::kCiphers && !initiator) options.cipher = AeadKind::kAes256Gcm;
  if (what == Case::kVersions && !initiator) options.versions = {200, 201};
  return options;
}

class Handler : public JoinHandler {
 public:
  explicit Handler(bool open) : open_(open) {}
  bool isOpen() const override { return open_; }
  std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding&, ByteView request,
                                       Time) override {
    CHECK(pin == World::get().alice.pin);
    if (request.empty() || request[0] % 2 == 0) return std::nullopt;
    return JoinMessage(request.begin(), request.end());
  }

 private:
  bool open_;
};

class Asker : public JoinAsker {
 public:
  JoinMessage request(const JoinBinding& binding) override { return {1, binding[0], binding[31]}; }
  void onAnswer(ByteView answer) override {
    CHECK(++answers_ == 1 && answer.size() <= kMaxJoinMessage);
  }

 private:
  int answers_ = 0;
};

// One gateway, which receives datagrams.
class Side {
 public:
  /// `what`: the lowest bit is set of an initiator; the next ones are the Case.
  explicit Side(uint8_t what)
      : initiator_(what & 1),
        case_(static_cast<Case>(what / 2 % static_cast<uint8_t>(Case::kCount))),
        handler_(case_ == Case::kJoin),
        random_(initiator_ ? 11 : 12) {
    World& world = World::get();
    FixedRandom::stream = &random_;
    provider_ = std::make_unique<DtlsProvider>(initiator_ ? world.alice : world.bob,
                                               fixedOptions(case_, initiator_));
    if (case_ != Case::kStranger) provider_->setAcceptedPins({world.alice.pin});
    provider_->setJoinHandler(&handler_);
    if (isJoining()) provider_->setJoinAsker(&asker_);
    expected_ = case_ == Case::kOtherPin ? world.alice.pin : world.bob.pin;
    handshake_ = initiator_ ? provider_->initiate(expected_, kNow) : provider_->accept(kNow);
  }

  bool isJoining() const { return case_ == Case::kJoin || case_ == Case::kShut; }

  std::vector<Bytes> start() { return drain(); }

  std::vector<Bytes> hear(ByteView bytes) {
    FixedRandom::stream = &random_;
    handshake_->onDatagram(bytes, now_);
    return drain();
  }
  std::vector<Bytes> wait() {
    FixedRandom::stream = &random_;
    handshake_->onTimer(now_ += 2s);
    return drain();
  }
  void onFirstAnswer() { handshake_->onFirstAnswer(10ms, 1s, now_); }

  bool done() const { return handshake_->state() == Handshake::State::kDone; }
  /// Whether the handshake came to the end that it has in this case.
  bool ended() const {
    const bool isGood =
        case_ == Case::kSession || case_ == Case::kChaCha || (case_ == Case::kJoin && initiator_);
    // A responder answers who joins until the handshake's time is over.
    const auto failed =
        case_ == Case::kJoin ? Handshake::State::kRunning : Handshake::State::kFailed;
    return handshake_->state() == (isGood ? Handshake::State::kDone : failed);
  }

  void finish() {
    const World& world = World::get();
    if (done() && !isJoining()) {
      CHECK(handshake_->secrets().peer == (initiator_ ? expected_ : world.alice.pin));
      CHECK(handshake_->secrets().sessionId != 0);
    }
    FixedRandom::stream = &random_;
    handshake_->onTimer(now_ + 10 * kHandshakeTimeout);
    CHECK(handshake_->state() != Handshake::State::kRunning);
    const bool isClosed = handshake_->state() == Handshake::State::kClosed;
    CHECK(!isClosed || (case_ == Case::kJoin && !initiator_));
    CHECK((done() || isClosed) == handshake_->error().empty());
  }

 private:
  std::vector<Bytes> drain() {
    std::vector<Bytes> all;
    Packet p = World::get().pool.allocate();
    for (; handshake_->pollDatagram(p); p = World::get().pool.allocate())
      all.emplace_back(p.view().begin(), p.view().end());
    return all;
  }

  bool initiator_;
  Case case_;
  Handler handler_;
  Asker asker_;
  Random random_;
  Time now_ = kNow;
  Pin expected_{};
  std::unique_ptr<DtlsProvider> provider_;
  std::unique_ptr<Handshake> handshake_;
};

void write(const std::string& path, uint8_t target, const std::vector<Bytes>& datagrams) {
  std::ofstream out(path, std::ios::binary);
  out.put(static_cast<char>(target));
  for (const Bytes& d : datagrams) {
    out.put(static_cast<char>(d.size() >> 8)).put(static_cast<char>(d.size()));
    out.write(reinterpret_cast<const char*>(d.data()), static_cast<std::streamsize>(d.size()));
  }
}

// Records a whole handshake as received by each side. Of a session, each of its datagrams alone as
// the first one, too.
int record(const std::string& folder, Case what) {
  const auto bits = static_cast<uint8_t>(static_cast<uint8_t>(what) * 2);
  Side initiator(bits | 1), responder(bits);
  std::vector<Bytes> toResponder = initiator.start(), toInitiator;
  for (size_t in = 0, out = 0; in < toInitiator.size() || out < toResponder.size();) {
    bool left = out < toResponder.size();
    Side& side = left ? responder : initiator;
    std::vector<Bytes>& answers = left ? toInitiator : toResponder;
    for (Bytes& b : side.hear(left ? toResponder[out++] : toInitiator[in++]))
      answers.push_back(std::move(b));
  }
  for (bool left : {false, true}) {
    const std::vector<Bytes>& all = left ? toInitiator : toResponder;
    std::string name =
        folder + (left ? "/initiator" : "/responder") + kNames[static_cast<size_t>(what)];
    write(name, bits | left, all);
    for (size_t i = 0; i < all.size() && what == Case::kSession; ++i)
      write(name + std::to_string(i), left, {all[i]});
  }
  return initiator.ended() && responder.ended() ? 0 : 1;
}

// Plays the datagrams of an input.
void play(Reader datagrams, Side& side) {
  while (datagrams.remaining() > 0) {
    const size_t size = datagrams.u16();
    if (size == kPause) {
      side.wait();
    } else if (size == kAnswered) {
      side.onFirstAnswer();
    } else {
      side.hear(datagrams.take(std::min(size, datagrams.remaining())));
    }
  }
}

// Checks that all recorded handshakes come to their end. A stale record would only be noise, which
// the first check rejects.
int complete(const std::string& folder) {
  for (const char* ending : kNames) {
    for (const char* name : {"/responder", "/initiator"}) {
      std::ifstream in(folder + name + ending, std::ios::binary);
      const Bytes bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      Reader reader(bytes);
      Side side(reader.u8());
      play(reader, side);
      if (!bytes.empty() && side.ended()) continue;
      std::fprintf(stderr, "%s%s%s leads to another end: record it anew, scripts/fuzz --record\n",
                   folder.c_str(), name, ending);
      return 1;
    }
  }
  return 0;
}

int recordAll(const std::string& folder) {
  int failed = 0;
  for (size_t what = 0; what < kNames.size(); ++what)
    failed |= record(folder, static_cast<Case>(what));
  return failed;
}

}  // namespace
}  // namespace braid

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string_view verb = *argc == 3 ? (*argv)[1] : "";
  if (verb == "--record") std::exit(braid::recordAll((*argv)[2]));
  if (verb == "--complete") std::exit(braid::complete((*argv)[2]));
  return 0;
}

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  braid::Reader reader({data, size});
  braid::Side side(reader.u8());
  braid::play(reader, side);
  side.finish();
}
