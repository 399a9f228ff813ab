#include "gateway/control/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <span>
#include <utility>

#include "host/linux/loop.h"
#include "host/linux/unix_listener.h"
#include "host/system.h"

namespace braid {
namespace {

constexpr ev_tstamp kAcceptPause = 1.0;  // seconds without accepting when file descriptors ran out
constexpr size_t kReadSize = 4096;

constexpr UnixListenerOptions kSocket{.title = "control socket ",
                                      .setPath = "set control.socket",
                                      .setGroup = "change control.group"};

// recv() that also returns the descriptor that came along, if any. Of several, it returns the last
// and closes the others.
ssize_t receive(int fd, std::span<char> bytes, UniqueFd& passed) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(c) + at, sizeof number);
      passed = UniqueFd(number);
    }
  }
  return got;
}

// Whether the client is root or runs as this process's user.
bool isOwner(int client) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid());
}

}  // namespace

struct ControlServer::Impl {
  struct Client {
    Client(Impl& owner, int socket)
        : impl(owner), fd(socket), session(owner.handler, isOwner(socket), monotonicNow()) {
      ev_io_init(&io, onReady, socket, EV_READ);
      ev_init(&timer, onTimeout);
      io.data = timer.data = this;
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() {
      ev_io_stop(impl.loop, &io);
      ev_timer_stop(impl.loop, &timer);
    }
    Impl& impl;
    UniqueFd fd;
    ControlSession session;
    ev_io io{};
    ev_timer timer{};
    std::list<Client>::iterator self{};
  };

  Impl(struct ev_loop* eventLoop, std::string socketPath, const std::string& group,
       ControlHandler& controlHandler)
      : loop(eventLoop), handler(controlHandler), listener(std::move(socketPath), group, kSocket) {
    ev_io_init(&io, onAccept, listener.get(), EV_READ);
    ev_timer_init(&resume, onResume, kAcceptPause, 0);
    io.data = resume.data = this;
    ev_io_start(loop, &io);
  }
  ~Impl() {
    clients.clear();
    ev_io_stop(loop, &io);
    ev_timer_stop(loop, &resume);
  }

  static void onAccept(struct ev_loop* l, ev_io* watcher, int events) {
    auto* self = static_cast<Impl*>(watcher->data);
    if (events & EV_ERROR) return self->pauseAccepting();  // the kernel has no memory to watch it
    Loop::call(l, [&] { self->accept(); });
  }
  static void onResume(struct ev_loop* l, ev_timer* watcher, int) {
    ev_io_start(l, &static_cast<Impl*>(watcher->data)->io);
  }
  static void onReady(struct ev_loop* l, ev_io* watcher, int events) {
    auto* client = static_cast<Client*>(watcher->data);
    Loop::call(l, [&] { client->impl.serve(*client, events); });
  }
  static void onTimeout(struct ev_loop*, ev_timer* watcher, int) {
    auto* client = static_cast<Client*>(watcher->data);
    client->impl.clients.erase(client->self);
  }

  void pauseAccepting() {
    ev_io_stop(loop, &io);
    ev_timer_set(&resume, kAcceptPause, 0);
    ev_timer_start(loop, &resume);
  }

  void accept() {
    int fd = accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        pauseAccepting();
      return;
    }
    if (clients.size() >= kMaxClients) {
      std::string busy = controlError("too many clients; try again");
      send(fd, busy.data(), busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      close(fd);
      return;
    }
    Client& client = clients.emplace_back(*this, fd);
    client.self = std::prev(clients.end());
    arm(client);
  }

  // Returns whether to keep the client.
  bool transfer(Client& client, int events) {
    ControlSession& session = client.session;
    if ((events & EV_READ) != 0 && session.wantsInput()) {
      char bytes[kReadSize];
      UniqueFd passed;
      ssize_t got = receive(client.fd.get(), bytes, passed);
      if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (passed) session.onDescriptor(std::move(passed));
      if (got > 0) session.onInput({bytes, static_cast<size_t>(got)}, monotonicNow());
      if (got == 0) session.onEnd(monotonicNow());
    }
    // At most one part of one answer per turn, however many clients ask.
    if (session.wantsTurn() && std::exchange(answeredIn, ev_iteration(loop)) != ev_iteration(loop))
      session.onTurn(monotonicNow());
    // One write per turn of the loop, so that a long answer does not delay packets.
    std::string_view out = session.output();
    if (!out.empty()) {
      ssize_t sent = send(client.fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) session.onWritten(static_cast<size_t>(sent), monotonicNow());
    }
    return !session.finished();
  }

  void serve(Client& client, int events) {
    if (transfer(client, events)) {
      arm(client);
    } else {
      clients.erase(client.self);
    }
  }

  void arm(Client& client) {
    const ControlSession& session = client.session;
    bool isReady = session.wantsTurn() || !session.output().empty();
    int events = (session.wantsInput() ? EV_READ : 0) | (isReady ? EV_WRITE : 0);
    ev_io_stop(loop, &client.io);
    ev_io_set(&client.io, client.fd.get(), events);
    ev_io_start(loop, &client.io);
    ev_timer_stop(loop, &client.timer);
    ev_timer_set(&client.timer, std::max(0.0, toSeconds(session.deadline() - monotonicNow())), 0);
    ev_timer_start(loop, &client.timer);
  }

  struct ev_loop* loop;
  ControlHandler& handler;
  UnixListener listener;
  ev_io io{};
  ev_timer resume{};
  std::list<Client> clients;
  unsigned answeredIn = 0;  // the turn of the loop in which the last part of an answer was made
};

ControlPath::ControlPath(std::string path)
    : path_(std::move(path)),
      lock_(lockOf(path_), "another daemon has the control socket " + path_ +
                               ": stop it first, or set control.socket") {
  removeStaleSocket(path_, kSocket);
}

ControlServer::ControlServer(struct ev_loop* loop, const ControlPath& path,
                             const std::string& group, ControlHandler& handler)
    : impl_(std::make_unique<Impl>(loop, path.text(), group, handler)) {}
ControlServer::~ControlServer() = default;
const std::string& ControlServer::path() const {
  return impl_->listener.path();
}
size_t ControlServer::clients() const {
  return impl_->clients.size();
}

}  // namespace braid
