#include "ctl/client/service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "base/bytes.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"

extern char** environ;

namespace braid {

namespace {

sigset_t interruptions() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// Whether check() has thrown since the object was made.
bool wasInterrupted = false;

}  // namespace

Interruption::Interruption() {
  wasInterrupted = false;
  sigset_t set = interruptions();
  sigaddset(&set, SIGPIPE);  // must not end in the middle because nobody reads its output
  sigprocmask(SIG_BLOCK, &set, &before_);
}

// A second Ctrl-C while everything is taken back must not end the process before it has said so.
Interruption::~Interruption() {
  sigset_t set = interruptions();
  timespec now{};
  while (wasInterrupted && sigtimedwait(&set, nullptr, &now) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Interruption::check() {
  sigset_t set = interruptions(), waiting;
  sigpending(&waiting);
  bool any = false;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) any |= sigismember(&waiting, signal) == 1;
  if (!any) return;
  timespec now{};
  sigtimedwait(&set, nullptr, &now);
  wasInterrupted = true;
  throw std::runtime_error("interrupted; nothing is left of this attempt at this gateway");
}

namespace {

constexpr Duration kEchoEvery = 250ms;
constexpr size_t kEchoBytes = 16;

// RFC 792, RFC 4443 section 4.1.
constexpr uint8_t kEchoV4 = 8, kEchoReplyV4 = 0, kEchoV6 = 128, kEchoReplyV6 = 129;

std::array<uint8_t, kEchoBytes> echoOf(bool v4, uint16_t id, uint16_t number) {
  std::array<uint8_t, kEchoBytes> out{v4 ? kEchoV4 : kEchoV6};
  store16(&out[4], id);
  store16(&out[6], number);
  std::memcpy(&out[8], "braidctl", 8);
  if (!v4) return out;  // the kernel adds the checksum of ICMPv6 (RFC 3542 section 3.1)
  uint32_t sum = 0;
  for (size_t i = 0; i < out.size(); i += 2) sum += load16(&out[i]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  store16(&out[2], static_cast<uint16_t>(~sum));
  return out;
}

// A raw IPv4 socket returns the IP header as well.
bool isReply(ByteView bytes, bool v4, uint16_t id) {
  size_t header = v4 && !bytes.empty() ? size_t{4} * (bytes[0] & 15u) : 0;
  if (bytes.size() < header + kEchoBytes) return false;
  ByteView icmp = bytes.subspan(header);
  return icmp[0] == (v4 ? kEchoReplyV4 : kEchoReplyV6) && load16(&icmp[4]) == id &&
         std::memcmp(&icmp[8], "braidctl", 8) == 0;
}

}  // namespace

bool hasSystemd() {
  std::error_code ignored;
  return std::filesystem::is_directory("/run/systemd/system", ignored);
}

bool hasInitScript() {
  return !hasSystemd() && access("/etc/init.d/braid", X_OK) == 0;
}

std::string startCommand(const std::string& name) {
  if (hasSystemd()) return "systemctl start braid@" + name;
  return hasInitScript() ? "/etc/init.d/braid start" : "braidd /etc/braid/" + name + ".yaml";
}

namespace {

// Reads until all writers have closed the pipe.
void readAll(int pipe, std::string& output) {
  std::array<char, 4096> bytes;
  for (ssize_t got; (got = ::read(pipe, bytes.data(), bytes.size())) != 0;) {
    if (got > 0) output.append(bytes.data(), static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return;
  }
}

}  // namespace

int runProgram(const std::vector<std::string>& words, std::string* output, const std::string* input,
               bool mayBeEnded) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (output && ::pipe2(ends, O_CLOEXEC) != 0) return kProgramNotStarted;
  UniqueFd reader(ends[0]), writer(ends[1]);
  pid_t child = 0;
  // The program must not inherit the signals that this process delays. One that does not use the
  // terminal is not ended by Ctrl-C either: what it does may be taking something back.
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  sigset_t none;
  sigemptyset(&none);
  if (posix_spawnattr_init(&attributes) != 0) return kProgramNotStarted;
  posix_spawnattr_setsigmask(&attributes, &none);
  const int ownGroup = output && !mayBeEnded ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | ownGroup));
  posix_spawn_file_actions_init(&actions);
  // A file without a name: a pipe could be full before the program reads.
  UniqueFd text;
  if (input) {
    text = UniqueFd(memfd_create("input", MFD_CLOEXEC));
    bool whole = text && write(text.get(), input->data(), input->size()) ==
                             static_cast<ssize_t>(input->size());
    if (!whole || lseek(text.get(), 0, SEEK_SET) != 0) return kProgramNotStarted;
    posix_spawn_file_actions_adddup2(&actions, text.get(), STDIN_FILENO);
  } else if (output) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (output) {
    posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  }
  int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return error == ENOENT ? kProgramNotFound : kProgramNotStarted;
  writer = UniqueFd();
  if (output) readAll(reader.get(), *output);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedBySignal + WTERMSIG(status);
}

bool startUnit(const std::string& name, std::string& said) {
  return runProgram({"systemctl", "--quiet", "enable", "--now", "braid@" + name}, &said, nullptr,
                    true) == 0;
}

void stopUnit(const std::string& name) {
  std::string said;
  int status = runProgram(
      {"systemctl", "--quiet", "disable", "--now", "braid@" + name, "braid-guard@" + name}, &said);
  if (status != 0) std::cerr << said;
}

bool waitForEcho(const Address& own, const Address& to, Duration patience) {
  bool v4 = to.isV4();
  UniqueFd socket(::socket(v4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6}));
  if (!socket)
    throw std::runtime_error(std::string("no socket for a ping: ") + std::strerror(errno) +
                             "; use root");
  const auto id = static_cast<uint16_t>(getpid());
  Time end = monotonicNow() + patience;
  for (uint16_t number = 0; monotonicNow() < end; ++number) {
    SocketAddress from{}, there{};
    socklen_t fromSize = toSocketAddress({own, 0}, from),
              thereSize = toSocketAddress({to, 0}, there);
    Interruption::check();
    // The device may not exist yet. Without it, another host may have this address.
    if (bind(socket.get(), &from.any, fromSize) == 0) {
      auto echo = echoOf(v4, id, number);
      sendto(socket.get(), echo.data(), echo.size(), MSG_NOSIGNAL, &there.any, thereSize);
    }
    for (Time next = monotonicNow() + kEchoEvery; monotonicNow() < next;) {
      auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(next - monotonicNow()).count();
      pollfd polled{socket.get(), POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(std::max<int64_t>(left, 1))) <= 0) continue;
      std::array<uint8_t, 2048> bytes;
      SocketAddress sender{};
      socklen_t size = sizeof sender;
      ssize_t got = recvfrom(socket.get(), bytes.data(), bytes.size(), 0, &sender.any, &size);
      if (got > 0 && fromSocketAddress(sender).address == to &&
          isReply(ByteView(bytes).first(static_cast<size_t>(got)), v4, id))
        return true;
    }
  }
  return false;
}

}  // namespace braid
