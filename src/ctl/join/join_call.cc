#include "ctl/join/join_call.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>

#include "ctl/client/service.h"
#include "ctl/join/join_names.h"
#include "ctl/views/format.h"
#include "gateway/dtls/dtls.h"
#include "gateway/dtls/join.h"
#include "host/host_numbers.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "tunnel/peer/dialing.h"

namespace braid {

namespace {

constexpr Duration kNextWay = 250ms;  // RFC 8305 section 5
constexpr size_t kMostWays = 32;

class Asker final : public JoinAsker {
 public:
  explicit Asker(const JoinCall& call) : call_(call) {}
  JoinMessage request(const JoinBinding& binding) override {
    JoinMessage wish = wishOf(call_.networks);
    const Invitation& invitation = call_.invitation;
    JoinRequest request{
        idOf(publicKeyOf(invitation.secret)),
        signJoin(invitation.secret, {binding, call_.identity.pin, invitation.pin, wish}),
        call_.networks};
    return writeRequest(request);
  }
  void onAnswer(ByteView bytes) override {
    if (!answer_) answer_ = readAnswer(bytes);
    malformed_ |= !answer_;
  }
  const std::optional<JoinAnswer>& answer() const { return answer_; }
  bool isMalformed() const { return malformed_; }

 private:
  const JoinCall& call_;
  std::optional<JoinAnswer> answer_;
  bool malformed_ = false;
};

// For somebody whose invitation has expired at the concentrator: whether it has here.
std::string clockNote(const Invitation& invitation) {
  const std::time_t now = std::time(nullptr);
  if (invitation.expires <= now) return "";
  return ". By this machine's clock, " + formatUtc(now) + ", it is good until " +
         formatUtc(invitation.expires) +
         ": if the concentrator's clock ('date -u') differs, set it";
}

// A path to the concentrator: its address, and the interface to use; empty: the host's own route.
struct Way {
  Endpoint to;
  std::string interface;
  Time startAt;
  UniqueFd socket;
  std::unique_ptr<ClientHandshake> initiator;
  std::string problem;   // why this path was given up
  bool isLocal = false;  // this host does not allow the attempt
  bool isOpen() const { return initiator && problem.empty(); }
};

void openWay(Way& way) {
  int family = way.to.address.isV4() ? AF_INET : AF_INET6;
  way.socket = UniqueFd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // An earlier gateway of this machine may have left its guard.
  uint32_t mark = HostNumbers{}.ownMark();
  (void)setsockopt(way.socket.get(), SOL_SOCKET, SO_MARK, &mark, sizeof mark);
  const std::string& device = way.interface;
  bool bound =
      device.empty() || setsockopt(way.socket.get(), SOL_SOCKET, SO_BINDTODEVICE, device.data(),
                                   static_cast<socklen_t>(device.size())) == 0;
  SocketAddress address{};
  socklen_t size = toSocketAddress(way.to, address);
  if (!way.socket || !bound || connect(way.socket.get(), &address.any, size) != 0)
    way.problem = std::strerror(errno);
  way.isLocal = !way.problem.empty();
}

RandomKey drawKey() {
  RandomKey key;
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    throw std::runtime_error("the system has no randomness");
  return key;
}

// Tries all paths at once, starting one after the other. The first answer ends the call.
class JoinCaller {
 public:
  JoinCaller(const JoinCall& call) : call_(call), asker_(call), provider_(call.identity) {
    provider_.setJoinAsker(&asker_);
  }

  JoinAnswer run() {
    plan();
    Time now = monotonicNow(), end = now + call_.patience;
    while (!asker_.answer() && !asker_.isMalformed() && (now < end || anyAnswered()) && anyLeft()) {
      Interruption::check();
      step(now);
      wait(now, now < end ? std::min(end, nextDeadline()) : nextDeadline());
      now = monotonicNow();
    }
    step(now);  // sends an alert that waits
    if (asker_.answer()) return *asker_.answer();
    throw std::runtime_error(reason());
  }

 private:
  void plan() {
    FoundEndpoints found = lookUpNames(call_.invitation.addresses, call_.uplinks);
    resolveProblem_ = found.problem;
    Time now = monotonicNow();
    std::vector<std::string> interfaces{""};
    interfaces.insert(interfaces.end(), call_.uplinks.begin(), call_.uplinks.end());
    for (const std::string& interface : interfaces) {
      for (const Endpoint& to : found.endpoints) {
        if (ways_.size() == kMostWays) return;
        Way& way = ways_.emplace_back();
        way.to = to;
        way.interface = interface;
        way.startAt = now + kNextWay * (ways_.size() - 1);
      }
    }
  }
  // What the concentrator itself refuses on one path, it refuses on all.
  bool anyLeft() const {
    return !isRefused_ &&
           std::ranges::any_of(ways_, [](const Way& way) { return way.problem.empty(); });
  }
  // Where the concentrator has answered, the handshake knows how slow the path is, and ends itself.
  bool anyAnswered() const {
    return std::ranges::any_of(
        ways_, [](const Way& way) { return way.isOpen() && way.initiator->isAnswered(); });
  }
  Time nextDeadline() const {
    Time next = kNever;
    for (const Way& way : ways_) {
      if (way.problem.empty())
        next = std::min(next, way.initiator ? way.initiator->handshake().deadline() : way.startAt);
    }
    return next;
  }
  void step(Time now) {
    for (Way& way : ways_) {
      if (!way.problem.empty()) continue;
      if (!way.initiator && now < way.startAt) continue;
      if (!way.initiator) {
        openWay(way);
        if (!way.problem.empty()) continue;
        way.initiator =
            std::make_unique<ClientHandshake>(provider_, random_, call_.invitation.pin, now);
      }
      if (way.initiator->handshake().deadline() <= now) way.initiator->onTimer(now);
      send(way);
      if (way.initiator->handshake().state() != Handshake::State::kFailed) continue;
      way.problem = std::string(way.initiator->handshake().error());
      isRefused_ |= now < way.startAt + kHandshakeTimeout;
    }
  }
  void send(Way& way) {
    for (Packet packet = pool_.allocate(); packet && way.initiator->pollDatagram(packet);
         packet = pool_.allocate())
      ::send(way.socket.get(), packet.view().data(), packet.view().size(), MSG_NOSIGNAL);
  }
  void wait(Time now, Time until) {
    std::vector<pollfd> polled;
    for (const Way& way : ways_) {
      if (way.isOpen()) polled.push_back({way.socket.get(), POLLIN, 0});
    }
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count();
    ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(ms + 1, 0, 1000)));
    for (Way& way : ways_) {
      if (way.isOpen()) receive(way);
    }
  }
  // An ICMP error may be forged, and that of a firewall may be temporary. So only the handshake's
  // own timeout ends the attempt.
  void receive(Way& way) {
    std::array<uint8_t, 2048> bytes;
    for (ssize_t got; (got = recv(way.socket.get(), bytes.data(), bytes.size(), 0)) != -1 ||
                      errno == ECONNREFUSED;) {
      if (got < 0) {
        unheard_ = true;
        continue;
      }
      way.initiator->onDatagram(ByteView(bytes).first(static_cast<size_t>(got)), monotonicNow());
    }
  }
  // A reason that the concentrator itself gave is preferred to silence.
  std::string reason() const {
    if (asker_.isMalformed())
      return "the concentrator answers in words of another release; bring both up to date";
    if (ways_.empty())
      return "the concentrator's name cannot be resolved: " + printable(resolveProblem_) +
             "; check the DNS of this host (/etc/resolv.conf, /etc/hosts)";
    for (const Way& way : ways_) {
      bool silent = way.problem.empty() || way.problem.starts_with("no answer") || way.isLocal;
      if (silent) continue;
      const bool mayBeClock = way.problem.starts_with(kNoOpenInvitation);
      return printable(way.problem) + (mayBeClock ? clockNote(call_.invitation) : "");
    }
    if (std::ranges::all_of(ways_, &Way::isLocal))
      return ways_[0].to.toString() + " cannot be reached from this host: " + ways_[0].problem +
             "; check the uplinks";
    std::string where;
    for (const HostPort& address : call_.invitation.addresses)
      where += (where.empty() ? "" : ", ") + formatHostPort(address);
    return "no answer from " + where + (unheard_ ? ", and a refusal on the way" : "") +
           ": UDP is blocked on the way or at the concentrator's firewall, the address is wrong, "
           "or the concentrator does not run; run 'braidctl doctor' there";
  }

  const JoinCall& call_;
  Asker asker_;
  DtlsProvider provider_;
  SecretRandom random_{drawKey()};
  PacketPool pool_{2048, 64};
  std::vector<Way> ways_;
  std::string resolveProblem_;
  bool unheard_ = false;    // an ICMP error said that nothing listens there
  bool isRefused_ = false;  // by the concentrator
};

}  // namespace

JoinAnswer callToJoin(const JoinCall& call) {
  return JoinCaller(call).run();
}

std::string refusalText(const JoinAnswer& answer, const Invitation& invitation) {
  switch (answer.code) {
    case JoinCode::kJoined:
      return {};
    case JoinCode::kUnknown:
      return "the concentrator does not know this invitation: its secret is wrong, or another one "
             "took its place; invite again";
    case JoinCode::kUsed:
      return "this invitation was used by another gateway already; invite again";
    case JoinCode::kExpired:
      return "this invitation has expired; invite again" + clockNote(invitation);
    case JoinCode::kNetworks:
    case JoinCode::kRefused:
      break;
  }
  return answer.text.empty() ? "the concentrator refuses without a reason; look into its log"
                             : printable(answer.text);
}

}  // namespace braid
