#include "host/linux/web_probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "host/linux/sockaddr.h"
#include "host/linux/web_answer.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr uint16_t kHttp = 80;
constexpr Duration kPatience = 5s;
constexpr size_t kMostHead = 4096;  // bytes of an answer that are read

}  // namespace

// A request and its answer. A socket's callback may not destroy its watcher, so the owner removes a
// call that has ended later.
class LinuxWebProbe::Call {
 public:
  Call(LinuxWebProbe& owner, const LookupWay& way, const Address& server)
      : owner_(owner), way_(way), server_(server), until_(monotonicNow() + kPatience) {
    fd_ = UniqueFd(::socket(server.isV4() ? AF_INET : AF_INET6,
                            SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_ || !connect(way, {server, kHttp})) {
      end();
      return;
    }
    std::string host = server.isV4() ? server.toString() : "[" + server.toString() + "]";
    request_ = "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
    watcher_.emplace(
        owner_.loop_, fd_.get(), [this] { read(); }, [this] { write(); });
    watcher_->wantWrite(true);
  }
  bool isDone() const { return done_; }
  /// When what has come by then is the answer.
  Time until() const { return until_; }
  WebAnswer answer() const {
    WebAnswer out = readWebAnswer(text_);
    out.way = way_;
    out.server = server_;
    return out;
  }

 private:
  bool connect(const LookupWay& way, const Endpoint& to) const {
    int fd = fd_.get();
    const Address& own = to.address.isV4() ? way.v4 : way.v6;
    SocketAddress local{}, remote{};
    socklen_t localSize = toSocketAddress({own, 0}, local),
              remoteSize = toSocketAddress(to, remote);
    auto length = static_cast<socklen_t>(way.interface.size());
    if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, way.interface.c_str(), length) != 0)
      return false;
    if (way.mark && ::setsockopt(fd, SOL_SOCKET, SO_MARK, &way.mark, sizeof way.mark) != 0)
      return false;
    if (own.bits() == 0 || ::bind(fd, &local.any, localSize) != 0) return false;
    return ::connect(fd, &remote.any, remoteSize) == 0 || errno == EINPROGRESS;
  }

  void write() {
    if (done_) return;
    watcher_->wantWrite(false);
    ssize_t sent = ::send(fd_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request_.size())) end();
  }

  void read() {
    char part[1024];
    while (!done_) {
      ssize_t got = ::recv(fd_.get(), part, sizeof part, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got > 0) text_.append(part, static_cast<size_t>(got));
      if (got <= 0 || text_.size() >= kMostHead || hasWholeHead(text_)) end();
    }
  }

  void end() {
    if (std::exchange(done_, true)) return;
    owner_.done_.arm(monotonicNow());
  }

  LinuxWebProbe& owner_;
  LookupWay way_;
  Address server_;
  UniqueFd fd_;
  std::string request_, text_;
  bool done_ = false;
  Time until_;
  std::optional<IoWatcher> watcher_;
};

LinuxWebProbe::LinuxWebProbe(Loop& loop, OnAnswer onAnswer)
    : loop_(loop), onAnswer_(std::move(onAnswer)), done_(loop, [this] { deliver(); }) {}

LinuxWebProbe::~LinuxWebProbe() = default;

void LinuxWebProbe::request(const LookupWay& way, const Address& server) {
  const std::pair key(way.uplink, server);
  calls_.erase(key);
  auto call = std::make_unique<Call>(*this, way, server);
  if (!call->isDone()) done_.arm(std::min(done_.deadline(), call->until()));
  calls_.emplace(key, std::move(call));
}

void LinuxWebProbe::deliver() {
  std::vector<WebAnswer> answers;
  Time now = monotonicNow(), next = kNever;
  std::erase_if(calls_, [&](const auto& entry) {
    const Call& call = *entry.second;
    bool isOver = call.isDone() || call.until() <= now;
    if (isOver) answers.push_back(call.answer());
    if (!isOver) next = std::min(next, call.until());
    return isOver;
  });
  done_.arm(next);
  for (const WebAnswer& answer : answers) onAnswer_(answer);
}

}  // namespace braid
