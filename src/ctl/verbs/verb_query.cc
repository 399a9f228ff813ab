#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <thread>

#include "ctl/client/client.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "ctl/views/host_names.h"
#include "ctl/views/views.h"
#include "gateway/dtls/identity.h"
#include "gateway/join/join_messages.h"
#include "gateway/log/trace_writer.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

void query(const std::string& cmd, const std::string& socket, bool json, std::ostream& out,
           bool verbose) {
  nlohmann::json answer = ask(findSocket(socket), cmd);
  if (json) {
    out << prettyJson(answer);
  } else if (cmd == "status") {
    out << (verbose ? verboseStatusText(answer) : statusText(answer));
  } else if (cmd == "paths") {
    out << pathsText(answer);
  } else if (cmd == "peers") {
    out << peersText(answer);
  } else {
    out << cmd << ": done\n";
  }
}

void flows(const std::string& socket, bool all, bool json, std::ostream& out) {
  using Steady = std::chrono::steady_clock;
  const std::string path = findSocket(socket);
  if (json) {
    out << prettyJson(ask(path, "flows"));
    return;
  }
  auto look = [&] {
    nlohmann::json answer = ask(path, "flows");
    const std::chrono::duration<double> at = Steady::now().time_since_epoch();
    return FlowLook{at.count(), std::move(answer)};
  };
  HostNames names(HostNames::known());
  names.refresh();
  const FlowLook before = look();
  std::this_thread::sleep_for(1s);
  out << flowsText(look(), before, names, all);
}

void version(const std::string& socket, bool json, std::ostream& out) {
  if (!json) out << "braidctl " << BRAID_VERSION << '\n';  // even if the daemon cannot be asked
  nlohmann::json versions{{"braidctl", BRAID_VERSION}};
  if (!socket.empty()) versions["braidd"] = textOf(ask(findSocket(socket), "version"), "version");
  if (json) {
    out << prettyJson(versions);
  } else if (!socket.empty()) {
    out << "braidd " << textOf(versions, "braidd") << '\n';
  }
}

void keygen(const std::string& name, const std::string& folder, bool json, std::ostream& out) {
  if (!isJoinName(name))
    throw std::runtime_error("NAME must be 1 to 32 letters, digits, dots, dashes or underscores");
  std::filesystem::path base = std::filesystem::path(folder) / name;
  std::string key = base.string() + ".key", certificate = base.string() + ".crt";
  const std::string made = formatPin(generateIdentity(key, certificate, name));
  if (json) {
    out << prettyJson({{"key", key}, {"certificate", certificate}, {"pin", made}});
    return;
  }
  out << key << "  the private key: it stays on this gateway\n"
      << certificate << "  its certificate\n"
      << made << "  the pin: give it to the peers\n";
}

void pin(const std::string& certificate, bool json, std::ostream& out) {
  const std::string read = formatPin(readPin(certificate));
  out << (json ? prettyJson({{"certificate", certificate}, {"pin", read}}) : read + "\n");
}

namespace {

// The answer, reduced to this peer.
nlohmann::json onlyPeer(nlohmann::json answer, const std::string& name) {
  nlohmann::json found = nlohmann::json::array();
  std::string names;
  for (const auto& peer : listOf(answer, "peers")) {
    std::string text = textOf(peer, "name");
    if (text == name) found.push_back(peer);
    names += (names.empty() ? "" : ", ") + text;
  }
  if (found.empty()) {
    throw std::runtime_error("no peer '" + printable(name) +
                             "'; there are: " + (names.empty() ? "none" : names));
  }
  answer["peers"] = std::move(found);
  return answer;
}

}  // namespace

void recovery(const std::string& peer, const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json answer = ask(findSocket(socket), "recovery");
  if (!peer.empty()) answer = onlyPeer(std::move(answer), peer);
  out << (json ? prettyJson(answer) : recoveryText(answer));
}

void traceOn(const std::string& file, const std::string& socket, bool json, std::ostream& out) {
  std::string path = findSocket(socket);
  nlohmann::json answer = ask(path, "trace-on", openTraceFile(file).get());
  answer["file"] = file;
  out << (json ? prettyJson(answer)
               : "the recovery trace goes to " + file + " until 'braidctl trace off'\n");
}

void traceOff(const std::string& socket, bool json, std::ostream& out) {
  nlohmann::json answer = ask(findSocket(socket), "trace-off");
  out << (json ? prettyJson(answer) : "trace off: done\n");
}

void drain(unsigned seconds, const std::string& socket, bool json, std::ostream& out) {
  using Steady = std::chrono::steady_clock;
  constexpr unsigned kMargin = 30;  // seconds in which the caller restarts the daemon
  const std::string path = findSocket(socket);
  auto openNow = [&] {
    return countOf(askWith(path, "drain", {{"seconds", seconds + kMargin}}), "open");
  };
  const uint64_t before = openNow();
  uint64_t open = before;
  for (auto end = Steady::now() + std::chrono::seconds(seconds); open > 0 && Steady::now() < end;) {
    std::this_thread::sleep_for(200ms);
    open = openNow();
  }
  if (json) {
    out << prettyJson({{"open_before", before}, {"open", open}});
    return;
  }
  out << (open == 0
              ? "no stream is open: a restart resets none"
              : "still open after " + std::to_string(seconds) + " s: " + std::to_string(open) +
                    " of " + std::to_string(before) + " streams; a restart resets them")
      << "\nnew connections are carried as packets until the restart, or for " << seconds + kMargin
      << " s; 'braidctl reload' ends that\n";
}

void explainPast(double sinceSeconds, const std::string& socket, bool json, std::ostream& out) {
  std::string path = findSocket(socket);
  PastAnswers past{.index = ask(path, "history"), .paths = {}, .peers = {}};
  for (const auto& p : listOf(past.index, "paths"))
    past.paths.push_back(
        askWith(path, "history", {{"peer", fieldOf(p, "peer")}, {"path", fieldOf(p, "path")}}));
  for (const auto& p : listOf(past.index, "peers"))
    past.peers.push_back(askWith(path, "history", {{"peer", p}}));
  auto now = static_cast<double>(std::time(nullptr));
  nlohmann::json explained = explain(past, now - sinceSeconds, now);
  out << (json ? prettyJson(explained) : explainText(explained));
}

}  // namespace braid
