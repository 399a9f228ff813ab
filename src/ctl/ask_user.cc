#include "ctl/ask_user.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "gateway/join/invitation.h"

namespace braid {

namespace {

constexpr char kControlC = 3;

}  // namespace

UserTerminal::UserTerminal() : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

UserTerminal::~UserTerminal() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::string> UserTerminal::ask(const std::string& question, bool hidden) {
  if (!isThere()) return std::nullopt;
  termios before{};
  bool canHide = hidden && tcgetattr(fd_, &before) == 0;
  if (canHide) {
    termios silent = before;
    silent.c_lflag &=
        ~static_cast<tcflag_t>(ECHO | ISIG);  // who ends here would leave a terminal without echo
    silent.c_cc[VEOL] = kControlC;
    tcsetattr(fd_, TCSAFLUSH, &silent);
  }
  std::string line;
  bool whole = ::write(fd_, question.data(), question.size()) == static_cast<ssize_t>(question.size());
  while (whole && !line.ends_with('\n') && !line.ends_with(kControlC)) {
    char part[4096];
    ssize_t got = ::read(fd_, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    whole = got > 0 && line.size() < kMaxInvitationLine;
    if (got > 0) line.append(part, static_cast<size_t>(got));
  }
  if (canHide) {
    tcsetattr(fd_, TCSAFLUSH, &before);
    whole &= ::write(fd_, "\n", 1) == 1;
  }
  if (line.ends_with(kControlC)) throw std::runtime_error("interrupted");
  if (!whole) return std::nullopt;
  line.pop_back();
  return line;
}

bool UserTerminal::askYes(const std::string& question, bool usual) {
  std::optional<std::string> answer = ask(question + (usual ? " [Y/n] " : " [y/N] "));
  if (!answer || answer->empty()) return answer && usual;
  return answer->front() == 'y' || answer->front() == 'Y';
}

std::string hideInvitations(int argc, char** argv) {
  std::string first;
  for (int i = 1; i < argc; ++i) {
    std::string_view word(argv[i]);
    word.remove_prefix(std::min(word.find_first_not_of(" \t\r\n"), word.size()));
    if (!word.starts_with(kAnyInvitation) || word.find('/') == std::string_view::npos) continue;
    if (first.empty()) first = argv[i];
    std::memset(argv[i], 'x', std::strlen(argv[i]));
  }
  return first;
}

}  // namespace braid
