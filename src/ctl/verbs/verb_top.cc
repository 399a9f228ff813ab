#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <thread>

#include "ctl/client/client.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "ctl/views/host_names.h"
#include "ctl/views/views.h"
#include "gateway/control/gateway_status.h"

namespace braid {
namespace {

constexpr int kRefreshMs = 1000;
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

volatile std::sig_atomic_t topEnds = 0;

// Sets the terminal to no line editing and to the alternate screen. Restores it at the end, which a
// key, a signal or an error causes.
class TopTerminal {
 public:
  explicit TopTerminal(std::ostream& out) : out_(out) {
    topEnds = 0;
    if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      isSet_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    struct sigaction action {};
    action.sa_handler = [](int) { topEnds = 1; };
    for (size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &action, &actions_[i]);
    struct sigaction resized {};
    resized.sa_handler = [](int) {};  // ends the wait for a key
    ::sigaction(SIGWINCH, &resized, &resize_);
    out_ << kEnter << std::flush;
  }
  ~TopTerminal() {
    out_ << kLeave << std::flush;
    if (isSet_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    for (size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &actions_[i], nullptr);
    ::sigaction(SIGWINCH, &resize_, nullptr);
  }
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  static winsize size() {
    winsize now{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_row == 0)
      now.ws_row = 24, now.ws_col = 80;
    return now;
  }

  void show(const std::vector<std::string>& lines) {
    out_ << "\x1b[H";
    for (size_t i = 0; i < lines.size(); ++i) out_ << (i > 0 ? "\r\n" : "") << lines[i] << "\x1b[K";
    out_ << "\x1b[J" << std::flush;
  }

  /// Waits at most `ms` milliseconds for a key and returns it. nullopt: no key, the screen's size
  /// changed, or the input ended.
  static std::optional<char> key(int ms) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char c = 0;
    if (::poll(&input, 1, ms) != 1) return std::nullopt;
    if (::read(STDIN_FILENO, &c, 1) == 1) return c;
    topEnds = 1;  // nobody is at the terminal any more
    return std::nullopt;
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  std::ostream& out_;
  termios before_{};
  bool isSet_ = false;
  struct sigaction actions_[std::size(kSignals)]{};
  struct sigaction resize_ {};
};

TopLook lookAt(const std::string& socket, TopView view) {
  TopLook look{0, ask(socket, "status"), {}};
  if (view == TopView::kFlows) look.flows = ask(socket, "flows");
  look.at = numberOf(fieldOf(look.status, "gateway"), kKeyOf<&GatewayStatus::uptime>, 0);
  return look;
}

void showOnce(const std::string& socket, TopView view, std::ostream& out) {
  TopScreen screen{HostNames(HostNames::known())};
  screen.add(lookAt(socket, view));
  std::this_thread::sleep_for(std::chrono::milliseconds(kRefreshMs));
  screen.add(lookAt(socket, view));
  for (const std::string& line : screen.lines(view, SIZE_MAX, SIZE_MAX)) out << line << '\n';
}

void writeLooks(const std::string& socket, bool once, std::ostream& out) {
  while (true) {
    TopLook look = lookAt(socket, TopView::kFlows);
    const nlohmann::json line{{"at_s", look.at}, {"status", look.status}, {"flows", look.flows}};
    out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!out.flush() || once) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(kRefreshMs));
  }
}

void showLive(const std::string& socket, TopView view, std::ostream& out) {
  using std::chrono::steady_clock;
  TopScreen screen{HostNames(HostNames::known())};
  screen.add(lookAt(socket, view));
  TopTerminal terminal(out);
  while (topEnds == 0) {
    winsize size = TopTerminal::size();
    terminal.show(screen.lines(view, size.ws_row, size.ws_col));
    auto next = steady_clock::now() + std::chrono::milliseconds(kRefreshMs);
    bool redraw = false;
    while (!redraw && topEnds == 0) {
      auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(next - steady_clock::now()).count();
      if (left <= 0) break;
      char key = TopTerminal::key(static_cast<int>(left)).value_or('\0');
      if (key == 'q' || key == 'Q' || key == '\x03') return;
      bool isNext = key == 'p' || key == 'P';
      if (isNext) view = nextView(view);
      winsize now = TopTerminal::size();
      redraw = isNext || now.ws_row != size.ws_row || now.ws_col != size.ws_col;
    }
    if (!redraw || view == TopView::kFlows) screen.add(lookAt(socket, view));
  }
}

}  // namespace

void top(const std::string& socket, bool once, bool json, std::ostream& out) {
  std::string path = findSocket(socket);
  if (json) {
    writeLooks(path, once, out);
  } else if (once || !isTerminal(out)) {
    showOnce(path, TopView::kPaths, out);
    out << '\n';
    showOnce(path, TopView::kFlows, out);
  } else {
    showLive(path, TopView::kPaths, out);
  }
}

}  // namespace braid
