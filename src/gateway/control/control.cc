#include "gateway/control/control.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <list>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "host/linux/loop.h"
#include "host/system.h"

namespace braid {
namespace {

constexpr int kBacklog = 16;
constexpr ev_tstamp kAcceptPause = 1.0;  // seconds without accepting when file descriptors ran out
constexpr size_t kReadSize = 4096;

[[noreturn]] void fail(const std::string& path, const std::string& problem,
                       const std::string& remedy) {
  throw std::runtime_error("control socket " + path + ": " + problem + "; " + remedy);
}

UniqueFd unixSocket(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) fail(path, std::strerror(errno), "raise the limit of open files, or free memory");
  return fd;
}

// Retries a refusal that may pass: a file that is left here is still there after the daemon has
// ended.
bool removeFile(const std::string& path) {
  for (int tries = 0; tries < 3; ++tries) {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
  }
  return false;
}

sockaddr_un socketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    fail(path, "bad path", "use 1 to 107 bytes");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Removes the socket of a daemon that died. Throws when a daemon answers there, or when the file is
// not a socket.
void removeStale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    fail(path, std::strerror(errno), "check the folder's permissions");
  }
  if (!S_ISSOCK(info.st_mode))
    fail(path, "something that is no socket is there", "remove it, or set control.socket");
  UniqueFd probe = unixSocket(path);
  if (connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    fail(path, "another daemon answers there", "stop it first, or set control.socket");
  }
  if (errno != ECONNREFUSED)
    fail(path, std::strerror(errno), "remove it, or check its permissions");
  if (!removeFile(path))
    fail(path, std::strerror(errno), "remove it, or check the folder's permissions");
}

gid_t groupId(const std::string& path, const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::vector<char> room(1 << 16);
  getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (found == nullptr) fail(path, "no group '" + name + "'", "create it, or change control.group");
  return found->gr_gid;
}

// Binds and listens; `made` is the file status of the new socket.
UniqueFd listenAt(const std::string& path, const std::string& group, struct stat& made) {
  sockaddr_un address = socketAddress(path);
  UniqueFd fd = unixSocket(path);
  mode_t before = umask(0177);  // nobody else can connect before group and mode are set
  int bound = bind(fd.get(), generic(address), sizeof address);
  int error = errno;
  umask(before);
  if (bound != 0) fail(path, std::strerror(error), "check the folder's permissions");
  try {
    if (!group.empty() && chown(path.c_str(), static_cast<uid_t>(-1), groupId(path, group)) != 0) {
      fail(path, "cannot give it to group '" + group + "': " + std::strerror(errno),
           "make the daemon's user a member");
    }
    if (chmod(path.c_str(), 0660) != 0 || listen(fd.get(), kBacklog) != 0 ||
        lstat(path.c_str(), &made) != 0) {
      fail(path, std::strerror(errno), "check the folder's permissions");
    }
  } catch (...) {
    removeFile(path);
    throw;
  }
  return fd;
}

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
      : loop(eventLoop),
        handler(controlHandler),
        path(std::move(socketPath)),
        listener(listenAt(path, group, made)) {
    ev_io_init(&io, onAccept, listener.get(), EV_READ);
    ev_timer_init(&resume, onResume, kAcceptPause, 0);
    io.data = resume.data = this;
    ev_io_start(loop, &io);
  }
  ~Impl() {
    clients.clear();
    ev_io_stop(loop, &io);
    ev_timer_stop(loop, &resume);
    struct stat info {};
    int found = -1;
    for (int tries = 0; tries < 3 && found != 0; ++tries) found = lstat(path.c_str(), &info);
    if (found == 0 && info.st_dev == made.st_dev && info.st_ino == made.st_ino) removeFile(path);
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
  std::string path;
  struct stat made {};  // file status of the socket
  UniqueFd listener;
  ev_io io{};
  ev_timer resume{};
  std::list<Client> clients;
  unsigned answeredIn = 0;  // the turn of the loop in which the last part of an answer was made
};

ControlPath::ControlPath(std::string path)
    : path_(std::move(path)),
      lock_(lockOf(path_), "another daemon has the control socket " + path_ +
                               ": stop it first, or set control.socket") {
  removeStale(path_, socketAddress(path_));
}

ControlServer::ControlServer(struct ev_loop* loop, const ControlPath& path,
                             const std::string& group, ControlHandler& handler)
    : impl_(std::make_unique<Impl>(loop, path.text(), group, handler)) {}
ControlServer::~ControlServer() = default;
const std::string& ControlServer::path() const {
  return impl_->path;
}
size_t ControlServer::clients() const {
  return impl_->clients.size();
}

}  // namespace braid
