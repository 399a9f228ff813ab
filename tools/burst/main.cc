// Makes as many short TCP connections per second as one thread can. The client keeps a fixed number
// of them open at once; a server is included.
//
//     burst serve ADDRESS:PORT           answers each number with bytes computed from it, and ends
//                                        the connection
//     burst ask ADDRESS:PORT --count N   sends N numbers, one on each connection, and compares
//                                        every byte of the answers
//
// `ask` prints the outcomes of the connections as one line of JSON: {"good", "wrong", "short"
// (ended too early), "reset", "failed", "hung" (nothing for `--patience` seconds), "seconds",
// "rate"}. `serve` prints "ready", and ends on SIGTERM.

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "inet/addresses.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kNumber = 8;  // bytes of a question
constexpr size_t kAnswer = 1000;
constexpr int kEvents = 256;

struct Settings {
  std::string target;
  uint64_t count = 10'000;
  size_t atOnce = 200;
  double patience = 30;
  std::vector<std::string> sources;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

uint8_t byteOf(uint64_t number, size_t place) {
  return static_cast<uint8_t>((number * 2654435761u + place * 40503u) >> 7);
}

UniqueFd openSocket(const Endpoint& like) {
  UniqueFd fd(::socket(like.address.isV6() ? AF_INET6 : AF_INET,
                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) fail("socket");
  return fd;
}

/// A watched socket.
struct Talk {
  UniqueFd fd;
  uint64_t number = 0;
  size_t bytes = 0;  ///< that came
  bool asked = false;
  Clock::time_point began = Clock::now();
};

class Watch {
 public:
  void add(Talk& talk, uint32_t events) { control(EPOLL_CTL_ADD, talk.fd.get(), &talk, events); }
  void change(Talk& talk, uint32_t events) { control(EPOLL_CTL_MOD, talk.fd.get(), &talk, events); }
  /// Adds the listener.
  void add(const UniqueFd& fd) { control(EPOLL_CTL_ADD, fd.get(), nullptr, EPOLLIN); }
  template <typename F>
  void wait(int milliseconds, F&& visit) {
    std::array<epoll_event, kEvents> events;
    int n = ::epoll_wait(fd_.get(), events.data(), kEvents, milliseconds);
    for (int i = 0; i < n; ++i) visit(static_cast<Talk*>(events[static_cast<size_t>(i)].data.ptr));
  }

 private:
  void control(int what, int fd, void* data, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = data;
    if (::epoll_ctl(fd_.get(), what, fd, &event) != 0) fail("epoll_ctl");
  }
  UniqueFd fd_{::epoll_create1(EPOLL_CLOEXEC)};
};

// ---- the server

class Server {
 public:
  explicit Server(const Endpoint& at) : listener_(openSocket(at)) {
    int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    SocketAddress address;
    socklen_t length = toSocketAddress(at, address);
    if (::bind(listener_.get(), &address.any, length) != 0 || ::listen(listener_.get(), 4096) != 0)
      fail("listen");
    watch_.add(listener_);
  }

  void run() {
    std::cout << "ready" << std::endl;
    for (;;) watch_.wait(-1, [this](Talk* talk) { talk ? answer(*talk) : accept(); });
  }

 private:
  void accept() {
    for (;;) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return;
      auto talk = std::make_unique<Talk>();
      talk->fd = std::move(fd);
      watch_.add(*talk, EPOLLIN);
      Talk* raw = talk.get();
      talks_[raw] = std::move(talk);
      answer(*raw);  // the question usually arrives with the connection
    }
  }
  void answer(Talk& talk) {
    auto* to = reinterpret_cast<uint8_t*>(&talk.number);
    ssize_t got = ::recv(talk.fd.get(), to + talk.bytes, kNumber - talk.bytes, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0 && (talk.bytes += static_cast<size_t>(got)) < kNumber) return;
    if (got > 0) {
      std::array<uint8_t, kAnswer> bytes;
      for (size_t i = 0; i < kAnswer; ++i) bytes[i] = byteOf(talk.number, i);
      // Fits into the buffer of a new socket.
      if (::send(talk.fd.get(), bytes.data(), kAnswer, MSG_NOSIGNAL) !=
          static_cast<ssize_t>(kAnswer))
        std::cerr << "an answer was cut\n";
    }
    talks_.erase(&talk);
  }

  Watch watch_;
  UniqueFd listener_;
  std::map<Talk*, std::unique_ptr<Talk>> talks_;
};

// ---- the client

class Client {
 public:
  Client(const Endpoint& target, const Settings& settings) : target_(target), settings_(settings) {
    for (const std::string& text : settings.sources) {
      std::optional<Address> source = Address::parse(text);
      if (!source) throw std::runtime_error(text + " is no address");
      sources_.push_back(*source);
    }
  }

  nlohmann::json run() {
    Clock::time_point began = Clock::now();
    uint64_t ended = 0;
    while (ended < settings_.count) {
      while (next_ < settings_.count && talks_.size() < settings_.atOnce) begin();
      size_t before = talks_.size();
      watch_.wait(100, [this](Talk* talk) { go(*talk); });
      expire();
      ended += before - talks_.size();
    }
    double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    nlohmann::json out = outcomes_;
    out["seconds"] = seconds;
    out["rate"] = static_cast<double>(settings_.count) / seconds;
    return out;
  }

 private:
  void begin() {
    auto talk = std::make_unique<Talk>();
    talk->number = next_++;
    talk->fd = openSocket(target_);
    SocketAddress address;
    if (!sources_.empty()) {
      int on = 1;  // the port is chosen by connect(), which knows the other end
      ::setsockopt(talk->fd.get(), SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      socklen_t length = toSocketAddress({sources_[talk->number % sources_.size()], 0}, address);
      if (::bind(talk->fd.get(), &address.any, length) != 0) fail("bind");
    }
    socklen_t length = toSocketAddress(target_, address);
    if (::connect(talk->fd.get(), &address.any, length) != 0 && errno != EINPROGRESS)
      fail("connect");
    watch_.add(*talk, EPOLLOUT);
    Talk* raw = talk.get();
    talks_[raw->number] = std::move(talk);
  }
  void go(Talk& talk) {
    if (!talk.asked) {
      ssize_t sent = ::send(talk.fd.get(), &talk.number, kNumber, MSG_NOSIGNAL);
      if (sent != static_cast<ssize_t>(kNumber)) return end(talk, nameOf(errno));
      talk.asked = true;
      return watch_.change(talk, EPOLLIN);
    }
    std::array<uint8_t, 2 * kAnswer> bytes;
    ssize_t got = ::recv(talk.fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) return errno == EAGAIN ? void() : end(talk, nameOf(errno));
    if (got == 0) return end(talk, talk.bytes == kAnswer ? "good" : "short");
    for (ssize_t i = 0; i < got; ++i, ++talk.bytes) {
      if (talk.bytes >= kAnswer || bytes[static_cast<size_t>(i)] != byteOf(talk.number, talk.bytes))
        return end(talk, "wrong");
    }
  }
  static const char* nameOf(int error) {
    return error == ECONNRESET || error == EPIPE ? "reset" : error == ETIMEDOUT ? "hung" : "failed";
  }
  void end(Talk& talk, const char* how) {
    ++outcomes_[how];
    talks_.erase(talk.number);
  }
  // Ends connections that had no answer for too long. They are ordered by their begin, as are their
  // numbers.
  void expire() {
    auto patience = std::chrono::duration<double>(settings_.patience);
    while (!talks_.empty() && Clock::now() - talks_.begin()->second->began > patience)
      end(*talks_.begin()->second, "hung");
  }

  Endpoint target_;
  const Settings& settings_;
  std::vector<Address> sources_;
  Watch watch_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::unique_ptr<Talk>> talks_;
  std::map<std::string, uint64_t> outcomes_{{"good", 0},  {"wrong", 0},  {"short", 0},
                                            {"reset", 0}, {"failed", 0}, {"hung", 0}};
};

void raiseDescriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  using namespace braid;
  Settings settings;
  CLI::App app("Short TCP connections as fast as one thread can make them");
  app.require_subcommand(1);
  CLI::App* serve = app.add_subcommand("serve", "answers");
  CLI::App* ask = app.add_subcommand("ask", "asks, and compares the answers");
  for (CLI::App* each : {serve, ask})
    each->add_option("target", settings.target, "ADDRESS:PORT")->required();
  ask->add_option("--count", settings.count, "connections");
  ask->add_option("--at-once", settings.atOnce, "so many are open at a time");
  ask->add_option("--patience", settings.patience, "seconds that one may take");
  ask->add_option("--source", settings.sources, "own addresses, in turn");
  CLI11_PARSE(app, argc, argv);
  try {
    raiseDescriptors();
    std::optional<Endpoint> target = Endpoint::parse(settings.target);
    if (!target) throw std::runtime_error(settings.target + " is no ADDRESS:PORT");
    if (serve->parsed()) Server(*target).run();
    std::cout << Client(*target, settings).run().dump() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "burst: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
