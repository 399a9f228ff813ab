// Floods a gateway's handshake limiter with handshake datagrams from many addresses at once.
//
//     noise        random bytes of a hello's size
//     strangers    hellos that are sealed for another gateway
//     hellos       hellos of an attacker that knows the gateway's pin; the gateway answers each
//                  with a cookie
//     handshakes   as hellos, and the attacker returns the cookie, does not continue the handshake,
//                  and fills OpenSSL's buffers with encrypted records before their time and with
//                  long messages that are announced but never arrive
//     peer         an attacker with a key that the gateway accepts: it finishes a handshake from
//                  each address, as far as that takes at most --finish seconds, and then begins
//                  handshakes from all of them without continuing any
//
// Prints as JSON what was sent and what came back. Meant for measuring one's own gateway.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <list>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gateway/dtls/dtls.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {
namespace {

using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::string mode;
  Endpoint target;
  Pin pin{};
  std::vector<std::string> sources;
  int ports = 1;
  double rate = 1000;
  double seconds = 10;
  int early = 100;
  std::string key, certificate;  ///< peer: those of the gateway's peer
  double finish = 10;            ///< peer: seconds
};

Identity newIdentity() {
  std::string folder = "/tmp/braid-flood-XXXXXX";
  if (!::mkdtemp(folder.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
  generateIdentity(folder + "/key", folder + "/crt", "flood");
  Identity identity = loadIdentity(folder + "/key", folder + "/crt");
  std::filesystem::remove_all(folder);
  return identity;
}

RandomKey newKey() {
  std::random_device device;
  RandomKey key{};
  std::ranges::generate(key, [&] { return static_cast<uint8_t>(device()); });
  return key;
}

Bytes firstFlight(const Identity& identity, const Pin& pin) {
  PacketPool pool(2048, 4);
  DtlsProvider provider(identity);
  std::unique_ptr<Handshake> handshake = provider.initiate(pin, Time{} + 1s);
  Packet hello = pool.allocate();
  if (!handshake->pollDatagram(hello)) throw std::runtime_error("OpenSSL makes no hello");
  return {hello.view().begin(), hello.view().end()};
}

// A DTLS 1.2 record (RFC 6347 section 4.1) with this number.
Bytes record(uint8_t type, uint16_t epoch, uint16_t number, ByteView body) {
  Bytes bytes(13 + body.size());
  Writer w(bytes);
  w.u8(type);
  w.u16(0xfefd);
  w.u16(epoch);
  w.zeros(4);
  w.u16(number);
  w.u16(static_cast<uint16_t>(body.size()));
  w.bytes(body);
  return bytes;
}

// One fragment of a handshake message of the largest accepted length (RFC 6347 section 4.2.2).
Bytes announced(uint16_t number) {
  Bytes body(12 + 20);
  store32(&body[0], uint32_t{11} << 24 | DtlsFilter::kMaxMessage);
  store16(&body[4], static_cast<uint16_t>(1 + number));
  store32(&body[8], 20);
  body[6] = 0;
  return record(22, 0, static_cast<uint16_t>(number + 10), body);
}

/// One source address and port of the flood.
class Source {
 public:
  Source(const std::string& address, const Endpoint& target) {
    std::optional<Address> own = Address::parse(address);
    if (!own) throw std::runtime_error("not an address: " + address);
    SocketAddress local, remote;
    socklen_t localSize = toSocketAddress({*own, 0}, local),
              remoteSize = toSocketAddress(target, remote);
    fd_ = UniqueFd(
        ::socket(own->isV6() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_ || ::bind(fd_.get(), &local.any, localSize) != 0 ||
        ::connect(fd_.get(), &remote.any, remoteSize) != 0)
      throw std::system_error(errno, std::generic_category(), "socket on " + address);
  }
  bool send(ByteView bytes) { return ::send(fd_.get(), bytes.data(), bytes.size(), 0) >= 0; }
  /// The next answer; empty when there is none.
  ByteSpan receive(ByteSpan room) {
    ssize_t n = ::recv(fd_.get(), room.data(), room.size(), 0);
    return room.first(n > 0 ? static_cast<size_t>(n) : 0);
  }

  HandshakeCookie cookie{};
  bool hasCookie = false;

 private:
  UniqueFd fd_;
};

class Flood {
 public:
  explicit Flood(const Settings& settings)
      : settings_(settings),
        identity_(settings.key.empty() ? newIdentity()
                                       : loadIdentity(settings.key, settings.certificate)),
        seal_(HandshakeEnvelope::Side::kInitiator, settings.pin) {
    for (int port = 0; port < settings.ports; ++port) {
      for (const std::string& address : settings.sources)
        sources_.emplace_back(address, settings.target);
    }
    hello_ = firstFlight(identity_, settings.pin);
  }

  /// Finishes a handshake from one source after the other, some at once.
  void finishFromEach() {
    constexpr size_t kAtOnce = 64;
    constexpr Duration kPatience = 500ms;
    SecretRandom random(newKey());
    DtlsProvider provider(identity_);
    struct Attempt {
      Source& source;
      ClientHandshake handshake;
      Time end;
    };
    std::list<Attempt> running;
    auto step = [&](Attempt& attempt, Time now) {
      std::array<uint8_t, 2048> room;
      for (ByteSpan answer = attempt.source.receive(room); !answer.empty();
           answer = attempt.source.receive(room))
        attempt.handshake.onDatagram(answer, now);
      attempt.handshake.onTimer(now);
      for (Packet out = pool_.allocate(); attempt.handshake.pollDatagram(out);
           out = pool_.allocate())
        send(attempt.source, out.view());
      bool isDone = attempt.handshake.handshake().state() == Handshake::State::kDone;
      finished_ += isDone;
      return isDone || now > attempt.end;
    };
    const Time end = monotonicNow() + fromSeconds(settings_.finish);
    auto next = sources_.begin();
    for (Time now = monotonicNow(); now < end && (next != sources_.end() || !running.empty());
         now = monotonicNow()) {
      for (; running.size() < kAtOnce && next != sources_.end(); ++next)
        running.push_back({*next, {provider, random, settings_.pin, now}, now + kPatience});
      std::erase_if(running, [&](Attempt& attempt) { return step(attempt, now); });
      std::this_thread::sleep_for(2ms);
    }
  }

  void run() {
    Clock::time_point begin = Clock::now(),
                      end = begin + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(settings_.seconds));
    for (uint64_t number = 0;; ++number) {
      Clock::time_point due =
          begin + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(static_cast<double>(number) / settings_.rate));
      if (due > end || Clock::now() > end) break;
      if (number % 16 == 0) std::this_thread::sleep_until(due);
      step(sources_[number % sources_.size()]);
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    std::this_thread::sleep_for(300ms);
    for (Source& source : sources_) listen(source);
  }

  nlohmann::json report() const {
    return {{"sent", sent_},
            {"per_second", static_cast<uint64_t>(static_cast<double>(sent_) / seconds_)},
            {"refused", refused_},
            {"answers", answers_},
            {"cookies", cookies_},
            {"handshakes", handshakes_},
            {"finished", finished_}};
  }

 private:
  void step(Source& source) {
    if (settings_.mode == "noise") return send(source, noise());
    listen(source);
    if (settings_.mode == "hellos" || settings_.mode == "strangers" || !source.hasCookie)
      return send(source, sealed(newId(), {}, hello_));
    ++handshakes_;
    HandshakeId id = newId();
    send(source, sealed(id, source.cookie, hello_));
    for (uint16_t i = 0; i < settings_.early; ++i) {
      send(source, sealed(id, source.cookie, record(22, 1, i, Bytes(100, 7))));
      if (i < 12) send(source, sealed(id, source.cookie, announced(i)));
    }
  }

  void send(Source& source, ByteView bytes) { ++(source.send(bytes) ? sent_ : refused_); }

  void listen(Source& source) {
    std::array<uint8_t, 2048> room;
    for (ByteSpan answer = source.receive(room); !answer.empty(); answer = source.receive(room)) {
      ++answers_;
      auto opened = seal_.open(answer);
      if (!opened || opened->header.kind != HandshakeKind::kCookieRequest) continue;
      ++cookies_;
      std::ranges::copy(opened->body, source.cookie.begin());
      source.hasCookie = true;
    }
  }

  Bytes noise() {
    Bytes bytes(hello_.size() + 53);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.next());
    return bytes;
  }

  HandshakeId newId() {
    HandshakeId id;
    store64(id.data(), random_.next());
    return id;
  }

  Bytes sealed(const HandshakeId& id, const HandshakeCookie& cookie, ByteView body) {
    HandshakeHeader header{HandshakeKind::kInitiator, id, {}, cookie};
    store64(header.nonce.data(), random_.next());
    store32(header.nonce.data() + 8, static_cast<uint32_t>(random_.next()));
    Packet packet = pool_.copy(body);
    if (!seal_.seal(header, packet)) throw std::runtime_error("cannot seal");
    return {packet.view().begin(), packet.view().end()};
  }

  const Settings& settings_;
  Identity identity_;
  HandshakeEnvelope seal_;
  PacketPool pool_{2048, 256};
  Random random_{static_cast<uint64_t>(Clock::now().time_since_epoch().count())};
  Bytes hello_;
  std::vector<Source> sources_;
  uint64_t sent_ = 0, refused_ = 0, answers_ = 0, cookies_ = 0, handshakes_ = 0, finished_ = 0;
  double seconds_ = 0;
};

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  using namespace braid;
  Settings settings;
  std::string target, pin;
  CLI::App app{"Floods the door of a gateway that is one's own."};
  app.add_option("mode", settings.mode)
      ->required()
      ->check(CLI::IsMember({"noise", "strangers", "hellos", "handshakes", "peer"}));
  app.add_option("--to", target, "The gateway's address and port")->required();
  app.add_option("--pin", pin, "The gateway's pin (hellos, handshakes, peer)");
  app.add_option("--from", settings.sources, "Local addresses to send from")->required();
  app.add_option("--ports", settings.ports, "Ports of each of them")->check(CLI::Range(1, 1000));
  app.add_option("--rate", settings.rate, "Datagrams a second; of handshakes, how many begin")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds)->check(CLI::PositiveNumber);
  app.add_option("--early", settings.early, "Early records of each handshake")
      ->check(CLI::Range(0, 1000));
  app.add_option("--key", settings.key, "The peer's own key (peer)");
  app.add_option("--certificate", settings.certificate, "And its certificate");
  app.add_option("--finish", settings.finish, "Seconds in which handshakes are finished (peer)")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    rlimit files{};  // a socket for each source
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    std::optional<Endpoint> endpoint = Endpoint::parse(target);
    std::optional<Pin> known = parsePin(pin);
    bool isPeer = settings.mode == "peer";
    bool needsPin = settings.mode == "hellos" || settings.mode == "handshakes" || isPeer;
    if (!endpoint || (needsPin && !known)) throw std::runtime_error("--to or --pin is malformed");
    if (isPeer == (settings.key.empty() || settings.certificate.empty()))
      throw std::runtime_error("--key and --certificate belong to peer");
    if (isPeer) settings.early = 0;
    settings.target = *endpoint;
    settings.pin = needsPin ? *known : Pin{1};  // nobody has that one
    Flood flood(settings);
    if (isPeer) flood.finishFromEach();
    flood.run();
    std::cout << flood.report() << "\n";
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << "flood: " << e.what() << "\n";
    return EXIT_FAILURE;
  }
}
