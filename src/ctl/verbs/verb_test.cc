#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "ctl/client/client.h"
#include "ctl/verbs/load_test.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/fields.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

using Json = nlohmann::json;

constexpr auto kLook = std::chrono::milliseconds(200);      // between two samples
constexpr auto kLastAcks = std::chrono::milliseconds(700);  // wait after the end
constexpr double kLate = 5;  // s after which a test that does not end is abandoned

volatile std::sig_atomic_t interrupted = 0;

// While it exists, SIGINT and SIGTERM end the test before braidctl ends.
class Interrupts {
 public:
  Interrupts() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &action, &int_);
    ::sigaction(SIGTERM, &action, &term_);
  }
  ~Interrupts() {
    ::sigaction(SIGINT, &int_, nullptr);
    ::sigaction(SIGTERM, &term_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction int_ {
  }, term_{};
};

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Json peerOf(const Json& status, const std::string& name) {
  Json found;
  std::string up;
  for (const Json& peer : listOf(status, "peers")) {
    std::string text = textOf(peer, kKeyOf<&PeerStatus::name>);
    if (!name.empty() && text == name) return peer;
    if (!flagOf(peer, kKeyOf<&PeerStatus::up>)) continue;
    if (name.empty() && !found.is_null())
      throw std::runtime_error("several peers are up; name one: " + up + ", " + text);
    if (name.empty()) found = peer;
    up += (up.empty() ? "" : ", ") + text;
  }
  if (found.is_null()) {
    throw std::runtime_error(
        name.empty() ? "no peer is up: nothing can be measured; braidctl doctor says why"
                     : "no peer '" + printable(name) + "'; up: " + (up.empty() ? "none" : up));
  }
  return found;
}

struct Paths {
  std::vector<std::string> all;      ///< usable ones, each once
  std::vector<std::string> metered;  ///< those of `all` that are metered
};

Paths pathsOf(const Json& peer) {
  Paths out;
  for (const Json& s : listOf(peer, "subflows")) {
    if (textOf(s, kKeyOf<&SubflowStatus::state>) != "active") continue;
    std::string name = textOf(s, kKeyOf<&SubflowStatus::uplink>);
    if (name == "-") name = textOf(s, kKeyOf<&SubflowStatus::remote>);
    if (std::find(out.all.begin(), out.all.end(), name) != out.all.end()) continue;
    out.all.push_back(name);
    if (textOf(s, "use") == "metered") out.metered.push_back(name);
  }
  return out;
}

// Asks at a terminal. Elsewhere, metered paths are left out unless the command line allows them.
bool mayUseMetered(const TestWish& wish, const Paths& paths, std::ostream& out) {
  if (wish.metered || paths.metered.empty()) return true;
  std::string names;
  for (const std::string& name : paths.metered) names += (names.empty() ? "" : ", ") + name;
  if (!isTerminal(out) || ::isatty(STDIN_FILENO) == 0) {
    if (!wish.json) out << names << ": metered, not measured (--metered does)\n";
    return false;
  }
  out << names << ": metered. Measuring takes up to "
      << formatVolume(static_cast<double>(wish.bytes)) << " of it each time. Do it? [y/N] "
      << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

// Measures one path; an empty `path` means all of them together.
Json measure(const TestWish& wish, const std::string& socket, const std::string& peer,
             const std::string& path, const std::vector<std::string>& left, std::ostream& out) {
  bool bar = isTerminal(out) && !wish.json;
  Json request{
      {"peer", peer}, {"seconds", wish.seconds}, {"bytes", wish.bytes}, {"metered", left.empty()}};
  if (!path.empty()) request["path"] = path;
  double began = secondsNow();
  askWith(socket, "test-start", request);
  std::vector<LoadSample> samples;
  size_t ended = 0;
  for (bool running = true; running;) {
    Json answer = ask(socket, "test");
    running = flagOf(answer, kKeyOf<&MeasureStatus::running>) && interrupted == 0;
    samples.push_back(loadSample(answer, path, left, secondsNow()));
    ended = samples.size() - 1;
    double passed = samples.back().at - began;
    if (passed > wish.seconds + kLate) break;
    const LoadSample& before = samples[ended > 4 ? ended - 4 : 0];
    double span = samples.back().at - before.at;
    double rate = span > 0
                      ? static_cast<double>(samples.back().delivered -
                                            std::min(samples.back().delivered, before.delivered)) /
                            span
                      : 0;
    if (bar)
      out << "\r" << progressBar(path.empty() ? "all" : path, passed / wish.seconds, rate)
          << "\x1b[K" << std::flush;
    if (running) std::this_thread::sleep_for(kLook);
  }
  ask(socket, "test-stop");
  if (bar) out << "\r\x1b[K" << std::flush;
  if (interrupted != 0) throw std::runtime_error("interrupted: the test was ended");
  std::this_thread::sleep_for(kLastAcks);
  samples.push_back(loadSample(ask(socket, "test"), path, left, secondsNow()));
  Json result = loadResult(samples, ended);
  result["path"] = path.empty() ? Json(nullptr) : Json(path);
  return result;
}

}  // namespace

bool isTerminal(const std::ostream& out) {
  return &out == &std::cout && ::isatty(STDOUT_FILENO) != 0;
}

void testPaths(const TestWish& wish, std::ostream& out) {
  std::string socket = findSocket(wish.socket);
  Json peer = peerOf(ask(socket, "status"), wish.peer);
  std::string name = textOf(peer, kKeyOf<&PeerStatus::name>);
  Paths paths = pathsOf(peer);
  if (paths.all.empty())
    throw std::runtime_error(name + " has no path that is active; braidctl doctor says why");
  std::vector<std::string> meant = wish.paths.empty() ? paths.all : wish.paths;
  std::vector<std::string> left;
  if (wish.paths.empty() && !mayUseMetered(wish, paths, out)) left = paths.metered;
  std::erase_if(meant, [&](const std::string& p) {
    return std::find(left.begin(), left.end(), p) != left.end();
  });
  if (meant.empty())
    throw std::runtime_error("all paths to " + name + " are metered; --metered measures them");
  Interrupts interrupts;
  Json result{{"peer", name}, {"runs", Json::array()}};
  for (const std::string& path : meant)
    result["runs"].push_back(measure(wish, socket, name, path, left, out));
  if (wish.paths.empty() && meant.size() > 1)
    result["runs"].push_back(measure(wish, socket, name, "", left, out));
  out << (wish.json ? prettyJson(result) : loadText(result));
}

}  // namespace braid
