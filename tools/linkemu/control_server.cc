#include "linkemu/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace braid {

namespace {
constexpr size_t kMaxLine = 1 << 20;    // bytes; a trace of 50,000 steps fits
constexpr size_t kMaxOutput = 4 << 20;  // bytes waiting for one client
constexpr size_t kMaxClients = 16;
}  // namespace

ControlServer::ControlServer(const std::string& path, struct ev_loop* loop, Handler handler)
    : path_(path), loop_(loop), handler_(std::move(handler)) {
  bindPath();
  ev_io_init(
      &watcher_,
      [](struct ev_loop*, ev_io* w, int) { static_cast<ControlServer*>(w->data)->onConnect(); },
      listener_.get(), EV_READ);
  watcher_.data = this;
  ev_io_start(loop_, &watcher_);
}

ControlServer::~ControlServer() {
  ev_io_stop(loop_, &watcher_);
  for (Client& client : clients_) ev_io_stop(loop_, &client.watcher);
  ::unlink(path_.c_str());
}

void ControlServer::bindPath() {
  auto fail = [&](const char* step) {
    throw std::system_error(errno, std::generic_category(),
                            "control socket " + path_ + ": " + step);
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) errno = ENAMETOOLONG, fail("path");
  std::memcpy(address.sun_path, path_.data(), path_.size());
  const auto* sa = reinterpret_cast<const sockaddr*>(&address);

  listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_) fail("socket");
  int bound = ::bind(listener_.get(), sa, sizeof address);
  if (bound != 0 && errno == EADDRINUSE) {
    UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    bool stale = probe && ::connect(probe.get(), sa, sizeof address) != 0 && errno == ECONNREFUSED;
    if (stale && ::unlink(path_.c_str()) == 0) bound = ::bind(listener_.get(), sa, sizeof address);
    if (!stale) errno = EADDRINUSE;
  }
  if (bound != 0) fail("bind");
  if (::chmod(path_.c_str(), 0600) != 0) fail("mode");
  if (::listen(listener_.get(), kMaxClients) != 0) fail("listen");
}

void ControlServer::onConnect() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd || clients_.size() >= kMaxClients) return;
  Client& client = clients_.emplace_back(Client{this, std::move(fd), {}, {}, {}});
  auto ready = [](struct ev_loop*, ev_io* w, int events) {
    Client& c = *static_cast<Client*>(w->data);
    if (!c.server->onReady(c, events)) c.server->close(c);
  };
  ev_io_init(&client.watcher, ready, client.fd.get(), EV_READ);
  client.watcher.data = &client;
  ev_io_start(loop_, &client.watcher);
}

bool ControlServer::onReady(Client& client, int events) {
  if ((events & EV_READ) && !readLines(client)) return false;
  if (!flush(client)) return false;
  ev_io_stop(loop_, &client.watcher);
  ev_io_set(&client.watcher, client.fd.get(), client.output.empty() ? EV_READ : EV_READ | EV_WRITE);
  ev_io_start(loop_, &client.watcher);
  return true;
}

bool ControlServer::readLines(Client& client) {
  char buffer[65536];
  ssize_t n = ::read(client.fd.get(), buffer, sizeof buffer);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  client.input.append(buffer, static_cast<size_t>(n));
  size_t begin = 0;
  for (size_t end; (end = client.input.find('\n', begin)) != std::string::npos; begin = end + 1) {
    client.output += handler_(client.input.substr(begin, end - begin)) + "\n";
  }
  client.input.erase(0, begin);
  return client.input.size() <= kMaxLine && client.output.size() <= kMaxOutput;
}

bool ControlServer::flush(Client& client) {
  while (!client.output.empty()) {
    ssize_t n = ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    client.output.erase(0, static_cast<size_t>(n));
  }
  return true;
}

void ControlServer::close(Client& client) {
  ev_io_stop(loop_, &client.watcher);
  clients_.remove_if([&](const Client& c) { return &c == &client; });
}

}  // namespace braid
