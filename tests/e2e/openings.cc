// An attack with few bytes: opens as many streams as fit into a rate, or (for comparison) sends
// datagrams of the same sizes and rate without content. The peer has a key that the gateway knows.
// This program uses the protocol's own code without its limits. Prints what it sent and received as
// one line of JSON. Meant for measuring one's own gateway.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "gateway/dtls/dtls.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "tests/raw_peer.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {
namespace {

using Frames = std::vector<uint8_t>;

constexpr SubflowId kSubflow{0};
constexpr size_t kFrames = 1200 - kHeaderSize - kTagSize;  // bytes of frames in a datagram of 1200
constexpr size_t kOuterHeaders = 28;                       // IPv4 and UDP
constexpr Duration kPatience = 5s;
constexpr uint16_t kFirstPort = 1024;

struct Settings {
  Endpoint target;
  Pin pin{};
  Address source;
  Endpoint destination;
  double mbit = 5;
  double seconds = 8;
  bool noise = false;
};

RandomKey newKey() {
  std::random_device device;
  RandomKey key{};
  std::ranges::generate(key, [&] { return static_cast<uint8_t>(device()); });
  return key;
}

class Opener {
 public:
  Opener(const Settings& settings, const Identity& identity)
      : settings_(settings), random_(newKey()), provider_(identity) {
    SocketAddress remote;
    socklen_t length = toSocketAddress(settings.target, remote);
    fd_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_ || ::connect(fd_.get(), &remote.any, length) != 0)
      throw std::system_error(errno, std::generic_category(), "socket");
    initiator_.emplace(provider_, random_, settings.pin, monotonicNow());
    flush();
    waitFor([this] { return peer_.has_value(); }, "the handshake");
    Frames first = test::framesOf(PathChallengeFrame{}, PingFrame{});
    first.resize(kFrames);
    say(first);
    waitFor([this] { return isAnswered_; }, "the path");
  }

  void run() {
    const Time begin = monotonicNow();
    const double bytesPerSecond = settings_.mbit * 1e6 / 8;
    double spent = 0, elapsed = 0;
    while ((elapsed = toSeconds(monotonicNow() - begin)) < settings_.seconds) {
      // Time in which other programs had the CPU is made up for only up to some milliseconds.
      spent = std::max(spent, (elapsed - 0.02) * bytesPerSecond);
      for (; spent < elapsed * bytesPerSecond; ++datagrams_) {
        say(settings_.noise ? noise() : openings());
        spent += kFrames + kHeaderSize + kTagSize + kOuterHeaders;
      }
      listen(1ms);
    }
    seconds_ = elapsed;
  }

  nlohmann::json report() const {
    return {{"datagrams", datagrams_},
            {"mbit", static_cast<double>(datagrams_) * (1200 + kOuterHeaders) * 8 / 1e6 / seconds_},
            {"openings", opened_},
            {"resets", resets_},
            {"closed", isClosed_}};
  }

 private:
  template <typename Condition>
  void waitFor(Condition&& condition, const std::string& what) {
    for (Time end = monotonicNow() + kPatience; !condition(); listen(10ms)) {
      if (monotonicNow() > end) throw std::runtime_error(what + " came to nothing");
      if (initiator_) initiator_->onTimer(monotonicNow());
      flush();
    }
  }

  void flush() {
    if (!initiator_) return;
    for (Packet out = pool_.allocate(); initiator_->pollDatagram(out); out = pool_.allocate())
      send(out.view());
  }
  void send(ByteView bytes) { (void)::send(fd_.get(), bytes.data(), bytes.size(), 0); }
  void say(const Frames& frames) { send(peer_->seal(kSubflow, next_++, frames, pool_).view()); }

  Frames noise() {
    Frames out = test::framesOf(PingFrame{});
    out.resize(kFrames);
    return out;
  }
  Frames openings() {
    Frames out(kFrames);
    size_t size = 0;
    std::array<uint8_t, kLargestStreamPrefix> room;
    for (;; ++opened_) {
      auto port = static_cast<uint16_t>(kFirstPort + opened_ % (UINT16_MAX - kFirstPort));
      StreamOpening opening{{{settings_.source, port}, settings_.destination}, 0};
      Writer unit(room);
      writeStreamPrefix(unit, StreamId(2 * opened_), &opening);
      if (size + kDataFrameHeader + unit.size() > out.size()) return out;
      writeStreamHeader(StreamFrame::kFirst | StreamFrame::kOpen, 0, unit.size(), &out[size]);
      std::copy_n(room.begin(), unit.size(), &out[size + kDataFrameHeader]);
      size += kDataFrameHeader + unit.size();
    }
  }

  /// Receives for that time, and sends what keeps the session alive.
  void listen(Duration wait) {
    pollfd event{fd_.get(), POLLIN, 0};
    ::poll(&event, 1, static_cast<int>(toMilliseconds(wait)));
    std::array<uint8_t, 2048> room;
    for (ssize_t n; (n = ::recv(fd_.get(), room.data(), room.size(), 0)) > 0;) {
      ByteView bytes = ByteView(room).first(static_cast<size_t>(n));
      if (isHandshakeDatagram(bytes)) {
        onHandshake(bytes);
      } else if (peer_) {
        onSession(bytes);
      }
    }
    if (!toAck_.empty()) say(acks());
  }
  void onHandshake(ByteView bytes) {
    if (!initiator_) return;
    initiator_->onDatagram(bytes, monotonicNow());
    flush();
    if (peer_ || initiator_->handshake().state() != Handshake::State::kDone) return;
    peer_.emplace(initiator_->handshake().secrets(), KeySchedule::Role::kInitiator, monotonicNow());
    initiator_.reset();
  }
  void onSession(ByteView bytes) {
    Datagram datagram;
    datagram.bytes = pool_.copy(bytes);
    std::optional<test::RawPeer::Opened> opened = peer_->open(datagram, monotonicNow());
    if (!opened) return;
    for (const WireFrame& frame : opened->frames) {
      if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame))
        say(test::framesOf(PathResponseFrame{challenge->token}));
      isAnswered_ |= std::holds_alternative<PathResponseFrame>(frame);
      if (const auto* reset = std::get_if<StreamResetFrame>(&frame))
        ++resets_[std::to_string(reset->code)];
      isClosed_ |= std::holds_alternative<CloseFrame>(frame);
    }
    if (opened->eliciting && opened->subflow == kSubflow) toAck_.push_back(opened->pn);
  }
  Frames acks() {
    std::ranges::sort(toAck_, std::greater<>());
    AckFrame ack;
    ack.subflow = kSubflow;
    for (PacketNumber pn : toAck_) {
      if (ack.count > 0 && ack.ranges[ack.count - 1].first == pn + 1) {
        ack.ranges[ack.count - 1].first = pn;
      } else if (ack.count < kMaxAckRanges) {
        ack.ranges[ack.count++] = {pn, pn};
      }
    }
    toAck_.clear();
    return test::framesOf(ack);
  }

  const Settings& settings_;
  SecretRandom random_;
  DtlsProvider provider_;
  PacketPool pool_{2048, 64};
  UniqueFd fd_;
  std::optional<ClientHandshake> initiator_;
  std::optional<test::RawPeer> peer_;
  PacketNumber next_{};
  std::vector<PacketNumber> toAck_;
  bool isAnswered_ = false, isClosed_ = false;
  uint64_t datagrams_ = 0, opened_ = 0;
  std::map<std::string, uint64_t> resets_;  ///< resets received, by code
  double seconds_ = 0;
};

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  using namespace braid;
  Settings settings;
  std::string target, pin, key, certificate, source, destination;
  CLI::App app{
      "Opens streams at a gateway that is one's own, as a peer of it, and keeps no bound."};
  app.add_option("--to", target, "The gateway's address and port")->required();
  app.add_option("--pin", pin, "The gateway's pin")->required();
  app.add_option("--key", key, "The peer's own key")->required();
  app.add_option("--certificate", certificate, "And its certificate")->required();
  app.add_option("--source", source, "Address of a host behind the peer")->required();
  app.add_option("--destination", destination, "Address and port that the streams are to reach")
      ->required();
  app.add_option("--mbit", settings.mbit, "Megabits of IP packets a second")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds)->check(CLI::PositiveNumber);
  app.add_flag("--noise", settings.noise, "The same datagrams without openings");
  CLI11_PARSE(app, argc, argv);
  try {
    std::optional<Endpoint> to = Endpoint::parse(target), server = Endpoint::parse(destination);
    std::optional<Address> host = Address::parse(source);
    std::optional<Pin> known = parsePin(pin);
    if (!to || !to->address.isV4() || !server || !server->address.isV4() || !host ||
        !host->isV4() || !known)
      throw std::runtime_error("a pin or an address is malformed; all are of IPv4");
    settings.target = *to;
    settings.destination = *server;
    settings.source = *host;
    settings.pin = *known;
    Opener opener(settings, loadIdentity(key, certificate));
    opener.run();
    std::cout << opener.report() << std::endl;
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << "openings: " << e.what() << "\n";
    return EXIT_FAILURE;
  }
}
