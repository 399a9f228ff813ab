// Hostile handshake datagrams, without their envelope: to a responder, and to an initiator in the
// middle of a handshake.
//
// Input: one byte (even: responder, odd: initiator), then datagrams, each with a 16-bit length and
// its bytes. OpenSSL's randomness and the certificates are fixed, so that a recorded flight stays
// valid and a corpus file can lead through a whole handshake. `fuzz_dtls_entry --record FOLDER`
// rewrites such files (run scripts/fuzz --record after a change of the handshake or an update of
// OpenSSL). `--complete FOLDER` fails when they are stale.

#define OPENSSL_SUPPRESS_DEPRECATED  // RAND_METHOD is the one way to replace randomness for keys
                                     // too
#include <openssl/ec.h>
#include <openssl/rand.h>

#include <algorithm>
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

DtlsOptions fixedOptions() {
  DtlsOptions options;
  options.hasAes = true;    // the same hello on every machine
  options.retransmit = 1h;  // real time must not interfere
  return options;
}

// One gateway, which receives datagrams.
class Side {
 public:
  explicit Side(bool initiator) : initiator_(initiator), random_(initiator ? 11 : 12) {
    World& world = World::get();
    FixedRandom::stream = &random_;
    provider_ = std::make_unique<DtlsProvider>(initiator ? world.alice : world.bob, fixedOptions());
    provider_->setAcceptedPins({world.alice.pin});
    handshake_ = initiator ? provider_->initiate(world.bob.pin, kNow) : provider_->accept(kNow);
  }

  std::vector<Bytes> start() { return drain(); }

  std::vector<Bytes> hear(ByteView bytes) {
    FixedRandom::stream = &random_;
    handshake_->onDatagram(bytes, kNow);
    return drain();
  }

  bool done() const { return handshake_->state() == Handshake::State::kDone; }

  void finish() {
    const World& world = World::get();
    CHECK(!done() || handshake_->secrets().peer == (initiator_ ? world.bob.pin : world.alice.pin));
    CHECK(!done() || handshake_->secrets().sessionId != 0);
    handshake_->onTimer(kNow + kHandshakeTimeout);
    CHECK(handshake_->state() != Handshake::State::kRunning);
    CHECK(done() == handshake_->error().empty());
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
  Random random_;
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

// Records a whole handshake as received by each side, and each of its datagrams alone as the first
// one.
int record(const std::string& folder) {
  Side initiator(true), responder(false);
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
    std::string name = folder + (left ? "/initiator" : "/responder");
    write(name, left, all);
    for (size_t i = 0; i < all.size(); ++i) write(name + std::to_string(i), left, {all[i]});
  }
  return initiator.done() && responder.done() ? 0 : 1;
}

// Plays the datagrams of an input.
void play(Reader datagrams, Side& side) {
  while (datagrams.remaining() > 0) {
    const size_t size = datagrams.u16();
    side.hear(datagrams.take(std::min(size, datagrams.remaining())));
  }
}

// Checks that both recorded handshakes complete. A stale record would only be noise, which the
// first check rejects.
int complete(const std::string& folder) {
  for (const char* name : {"/responder", "/initiator"}) {
    std::ifstream in(folder + name, std::ios::binary);
    const Bytes bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    Reader reader(bytes);
    Side side(reader.u8() & 1);
    play(reader, side);
    if (side.done()) continue;
    std::fprintf(stderr, "%s%s leads to no session: record it anew, scripts/fuzz --record\n",
                 folder.c_str(), name);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace braid

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string_view verb = *argc == 3 ? (*argv)[1] : "";
  if (verb == "--record") std::exit(braid::record((*argv)[2]));
  if (verb == "--complete") std::exit(braid::complete((*argv)[2]));
  return 0;
}

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  braid::Reader reader({data, size});
  braid::Side side(reader.u8() & 1);
  braid::play(reader, side);
  side.finish();
}
