#include "ctl/verbs/load_test.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "ctl/client/client.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "ctl/views/views.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

namespace {
constexpr double kStart =
    0.3;  // share of the test in which the congestion control may still be finding the rate

double known(double ms) {
  return std::isfinite(ms) ? ms : 0;
}
}  // namespace

LoadSample loadSample(const nlohmann::json& answer, const std::string& path,
                      const std::vector<std::string>& left, double at) {
  LoadSample out;
  out.at = at;
  for (const auto& s : listOf(answer, "subflows")) {
    std::string name = pathName(s);
    bool isMeant =
        path.empty() ? std::find(left.begin(), left.end(), name) == left.end() : name == path;
    if (!isMeant) continue;
    out.open += textOf(s, kKeyOf<&SubflowStatus::state>) != "closed";
    out.delivered += countOf(s, kKeyOf<&SubflowStatus::deliveredBytes>);
    out.sentBytes += countOf(s, kKeyOf<&SendCounts::sentBytes>);
    out.sentPackets += countOf(s, kKeyOf<&SendCounts::sentPackets>);
    out.lostPackets += lostPackets(s);
    out.srttMs = std::max(out.srttMs, known(numberOf(s, kKeyOf<&SubflowStatus::srtt>)));
    out.leastRttMs = std::max(out.leastRttMs, known(numberOf(s, kKeyOf<&SubflowStatus::minRtt>)));
  }
  return out;
}

nlohmann::json loadResult(std::span<const LoadSample> samples, size_t ended) {
  nlohmann::json out{{"bytes_per_s", nullptr},   {"loss", nullptr}, {"idle_rtt_ms", nullptr},
                     {"loaded_rtt_ms", nullptr}, {"sent_bytes", 0}, {"seconds", 0}};
  // A subflow ends meanwhile when its uplink is down, or has reached its cap.
  const auto gone =
      std::ranges::adjacent_find(samples, [](const LoadSample& a, const LoadSample& b) {
        return b.open < a.open || b.sentBytes < a.sentBytes;
      });
  if (gone != samples.end()) {
    samples = samples.first(static_cast<size_t>(gone - samples.begin()) + 1);
    ended = std::min(ended, samples.size() - 1);
  }
  if (samples.size() < 2 || ended >= samples.size()) return out;
  const LoadSample &first = samples.front(), &last = samples.back(), &end = samples[ended];
  double from = first.at + kStart * (end.at - first.at);
  size_t begin = 0;
  while (begin < ended && samples[begin].at < from) ++begin;
  if (begin == ended) begin = 0;
  const LoadSample& start = samples[begin];
  if (end.at > start.at)
    out["bytes_per_s"] = static_cast<double>(end.delivered - start.delivered) / (end.at - start.at);
  if (last.sentPackets > first.sentPackets)
    out["loss"] =
        static_cast<double>(last.lostPackets - std::min(last.lostPackets, first.lostPackets)) /
        static_cast<double>(last.sentPackets - first.sentPackets);
  double idle = first.leastRttMs > 0 ? first.leastRttMs : first.srttMs, loaded = 0;
  for (const LoadSample& s : samples) loaded = std::max(loaded, s.srttMs);
  if (idle > 0) out["idle_rtt_ms"] = idle;
  if (loaded > 0) out["loaded_rtt_ms"] = loaded;
  out["sent_bytes"] = last.sentBytes - first.sentBytes;
  out["seconds"] = end.at - first.at;
  return out;
}

namespace {
bool hasAnswered(const nlohmann::json& run) {
  return numberOf(run, "bytes_per_s") > 0;
}
}  // namespace

std::string loadText(const nlohmann::json& result) {
  Table table({"PATH", ">THROUGHPUT", ">LOSS", ">RTT IDLE", ">RTT LOADED", ">SENT"});
  for (const auto& run : listOf(result, "runs")) {
    std::string path = textOf(run, "path");
    if (path == "-") path = "all";
    if (const std::string state = wordOf(run, "state"); !state.empty() || !hasAnswered(run)) {
      const std::string told = state == "failed" ? "down" : state;
      table.add({path, state.empty() ? "no answer" : told, "-", "-", "-", "-"});
      continue;
    }
    table.add({path, formatRate(numberOf(run, "bytes_per_s")),
               formatFraction(numberOf(run, "loss")),
               formatMilliseconds(numberOf(run, "idle_rtt_ms")),
               formatMilliseconds(numberOf(run, "loaded_rtt_ms")),
               formatBytes(numberOf(run, "sent_bytes"))});
  }
  return "to " + textOf(result, "peer") +
         ", through the tunnel, in the direction from here to there:\n" + table.toString();
}

std::string progressBar(const std::string& what, double part, double bytesPerSecond) {
  constexpr size_t kWidth = 30;
  auto full = static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * kWidth));
  return "[" + std::string(full, '#') + std::string(kWidth - full, ' ') + "] " + printable(what) +
         "  " + formatRate(bytesPerSecond);
}

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
  std::vector<std::string> all;             ///< usable ones, each once
  std::vector<std::string> metered;         ///< those of `all` that are metered
  std::map<std::string, std::string> down;  ///< the others, with their state ("failed")
};

Paths pathsOf(const Json& peer) {
  Paths out;
  for (const Json& s : listOf(peer, "subflows")) {
    const std::string name = pathName(s), state = textOf(s, kKeyOf<&SubflowStatus::state>);
    if (state != "active") {
      out.down.emplace(name, state);
      continue;
    }
    if (std::find(out.all.begin(), out.all.end(), name) != out.all.end()) continue;
    out.all.push_back(name);
    if (textOf(s, "use") == "metered") out.metered.push_back(name);
  }
  for (const std::string& name : out.all) out.down.erase(name);
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
      << formatBytes(static_cast<double>(wish.bytes)) << " of it each time. Do it? [y/N] "
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

// Of a path that does not answer: nothing is known, and its state says why.
Json downResult(const std::string& path, const std::string& state) {
  Json result = loadResult({}, 0);
  result["path"] = path;
  result["state"] = state;
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
  const bool measuresAll = wish.paths.empty() && meant.size() > 1;
  if (wish.paths.empty())
    for (const auto& [path, state] : paths.down) meant.push_back(path);
  for (const std::string& path : meant) {
    auto down = paths.down.find(path);
    result["runs"].push_back(down == paths.down.end() ? measure(wish, socket, name, path, left, out)
                                                      : downResult(path, down->second));
  }
  if (measuresAll) result["runs"].push_back(measure(wish, socket, name, "", left, out));
  out << (wish.json ? prettyJson(result) : loadText(result));
  if (std::ranges::none_of(result["runs"], hasAnswered))
    throw std::runtime_error("nothing was measured: no path answered; 'braidctl doctor' says why");
}

}  // namespace braid
