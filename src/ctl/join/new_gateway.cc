#include "ctl/join/new_gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "ctl/client/client.h"
#include "ctl/client/daemon_log.h"
#include "ctl/client/service.h"
#include "ctl/firewall/firewall.h"
#include "ctl/join/guard.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"
#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "host/linux/files.h"
#include "host/system.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr char kControlC = 3;
constexpr int kLook = 200;  ///< milliseconds between two looks for a pending signal

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
        ~static_cast<tcflag_t>(ECHO | ISIG);  // ending here would leave a terminal without echo
    silent.c_cc[VEOL] = kControlC;
    tcsetattr(fd_, TCSAFLUSH, &silent);
  }
  std::string line;
  bool whole =
      ::write(fd_, question.data(), question.size()) == static_cast<ssize_t>(question.size());
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

bool UserTerminal::askYesWithin(const std::string& question, Duration limit) {
  if (!isThere()) return false;
  tcflush(fd_, TCIFLUSH);
  if (::write(fd_, question.data(), question.size()) != static_cast<ssize_t>(question.size()))
    return false;
  using Steady = std::chrono::steady_clock;
  for (Steady::time_point end = Steady::now() + limit; Steady::now() < end;) {
    Interruption::check();
    pollfd terminal{fd_, POLLIN, 0};
    if (::poll(&terminal, 1, kLook) <= 0) continue;
    char answer = 0;
    return ::read(fd_, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
  }
  return false;
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

namespace {

std::string listed(const std::vector<Prefix>& networks) {
  std::string text;
  for (const Prefix& network : networks) text += (text.empty() ? "" : " ") + network.toString();
  return text;
}

std::vector<Prefix> parseNetworks(const std::vector<std::string>& texts) {
  std::vector<Prefix> out;
  if (texts == std::vector<std::string>{"none"}) return out;
  for (const std::string& text : texts) {
    std::optional<Prefix> network = Prefix::parse(text);
    if (!network)
      throw std::runtime_error("'" + text +
                               "' is no network; write one such as 192.168.1.0/24, or none");
    if (text.find('/') != std::string::npos && network->toString() != text)
      throw std::runtime_error("'" + text + "' has host bits set; the network is " +
                               network->toString());
    out.push_back(*network);
  }
  if (out.size() > kMaxJoinNetworks)
    throw std::runtime_error("there are more than 32 networks; name fewer, wider ones");
  return out;
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (char c : text + " ") {
    if (c != ' ' && c != ',' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::exchange(word, {}));
    }
  }
  return out;
}

bool isThere(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

constexpr std::string_view kUnfinished =
    "# NOT FINISHED: braidctl was killed while it made this gateway. Its next attempt replaces "
    "this file.\n";

bool isUnfinished(const std::string& path) {
  std::ifstream file(path);
  std::string text(kUnfinished.size(), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file && text == kUnfinished;
}

// systemd's unit reads configurations only from /etc/braid.
bool hasUnit(const NewGateway& options) {
  return options.folder == "/etc/braid" && hasSystemd();
}

}  // namespace

GatewayFiles newFiles(const NewGateway& options) {
  if (!isJoinName(options.name))
    throw std::runtime_error("--name must be 1 to 32 letters, digits, dots, dashes or underscores");
  GatewayFiles files{options.folder, options.name};
  if (isThere(files.yaml()) && (!isUnfinished(files.yaml()) || isUp(files)))
    throw std::runtime_error(files.yaml() +
                             " is there already; choose another name with --name, or remove it");
  if (options.dryRun) return files;
  if (mkdir(options.folder.c_str(), 0755) != 0 && errno != EEXIST)
    throw std::runtime_error(options.folder + ": cannot be made: " + std::strerror(errno) +
                             "; use root");
  if (access(options.folder.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error(options.folder + ": cannot be written: " + std::strerror(errno) +
                             "; use root");
  return files;
}

std::vector<Prefix> chooseNetworks(const NewGateway& options, const std::vector<Prefix>& found,
                                   bool asks, UserTerminal& terminal) {
  if (!options.networks.empty()) return parseNetworks(options.networks);
  if (options.yes || (found.empty() && !asks)) return found;
  std::optional<std::string> answer =
      terminal.ask("Networks behind this gateway (none: only this machine) [" +
                   (found.empty() ? "none" : listed(found)) + "]: ");
  if (!answer && found.empty()) return found;
  if (!answer)
    throw std::runtime_error("behind this gateway: " + listed(found) +
                             "? Say so with --yes, or name the networks, or none, with --network");
  std::vector<std::string> given = words(*answer);
  return given.empty() ? found : parseNetworks(given);
}

bool agrees(const NewGateway& options, const std::string& question, UserTerminal& terminal) {
  if (options.keepRouter) return false;
  return options.yes || (terminal.isThere() && terminal.askYes(question, true));
}

FolderLock::FolderLock(const NewGateway& options)
    : lock_(options.folder + "/.braidctl.lock",
            "another braidctl makes a gateway in " + options.folder + ": wait until it is done") {
  // Checks again that no other braidctl has made them meanwhile.
  GatewayFiles files = newFiles(options);
  if (!isThere(files.yaml())) return;
  if (hasUnit(options)) stopUnit(files.name);
  unlink(files.yaml().c_str());
}

// An existing file was left by an attempt that was killed, or made by hand.
Identity prepareIdentity(const GatewayFiles& files, Transaction& all) {
  std::string key = files.key(), certificate = files.certificate();
  if (!isThere(key)) {
    all.step([&] { generateIdentity(key, certificate, files.name); },
             [=] {
               unlink(certificate.c_str());  // if killed here, the next attempt makes it again
               unlink(key.c_str());
             });
  } else if (!isThere(certificate)) {
    all.step([&] { certifyKey(key, certificate, files.name); },
             [=] { unlink(certificate.c_str()); });
  }
  return loadIdentity(key, certificate);
}

void putYaml(const GatewayFiles& files, const std::string& yaml, Transaction& all) {
  std::string path = files.yaml();
  // Readable for all, because the daemon runs as another user and the file holds no secret.
  auto write = [&] {
    if (int error = newDurableFile(path, std::string(kUnfinished) + yaml, 0644); error != 0)
      throw std::runtime_error(path + ": cannot be written: " + std::strerror(error) +
                               "; check the disk");
  };
  all.step(write, [path] { unlink(path.c_str()); });
  if (std::string problems = problemsOf(loadConfig(path)); !problems.empty())
    throw std::runtime_error(problems);
}

void showYaml(const NewGateway& options, const GatewayFiles& files, const std::string& yaml,
              const std::string& remark, std::ostream& out) {
  LoadOptions reading;
  reading.checkIdentity = false;  // key and certificate need not exist yet
  ConfigResult result = parseConfig(yaml, files.yaml(), reading);
  if (std::string problems = problemsOf(result); !problems.empty())
    throw std::runtime_error(problems);
  if (options.json) {
    out << prettyJson({{"dry_run", true}, {"file", files.yaml()}, {"yaml", yaml}});
  } else {
    out << "# Would be written to " << files.yaml() << remark << "\n" << yaml;
  }
}

nlohmann::json madeGateway(const GatewayFiles& files, const Identity& identity,
                           const std::vector<InterfaceAddress>& addresses,
                           const std::vector<Prefix>& networks, const RouterWish& wish,
                           bool started) {
  return {{"dry_run", false},
          {"file", files.yaml()},
          {"pin", formatPin(identity.pin)},
          {"addresses", textsOf(addresses)},
          {"networks", textsOf(networks)},
          {"forwarding", wish.forwarding},
          {"between_peers", wish.betweenPeers},
          {"nat", wish.nat},
          {"started", started}};
}

void finishYaml(const GatewayFiles& files, const std::string& yaml, std::ostream& out) {
  std::string problem = writeDurableFile(files.yaml(), yaml, 0644);
  if (!problem.empty())
    out << problem
        << "; all is well otherwise: remove its first line, which says that it is not finished\n";
}

bool isUp(const GatewayFiles& files) {
  try {
    nlohmann::json status = ask(findSocket(files.name), "status");
    for (const auto& peer : listOf(status, "peers")) {
      if (flagOf(peer, "up")) return true;
    }
  } catch (const std::runtime_error&) {
  }
  return false;
}

FirewallAnswer openFirewall(const NewGateway& options, const GatewayFiles& files, Transaction& all,
                            UserTerminal& terminal, std::ostream& out) {
  FirewallAnswer answer;
  ConfigResult result = loadConfig(files.yaml());
  const auto* config = std::get_if<Config>(&result);
  if (!config) return answer;
  FirewallState state;
  try {
    state = lookAtFirewall(files.yaml(), *config);
  } catch (const SystemError&) {
    return answer;  // a kernel without nf_tables has nothing that could be read
  }
  std::string programs;
  for (const FirewallState::Part& part : state.parts) {
    bool helps = false;
    for (const Obstacle& obstacle : part.obstacles) {
      if (!canOpen(part.program, obstacle.opening)) continue;
      helps = keepsRules(part.program);
      out << "this host's firewall: " << printable(obstacle.opening.toString())
          << " are dropped by " << printable(obstacle.drop.toString()) << "\n";
    }
    if (helps) programs += (programs.empty() ? "" : " and ") + std::string(nameOf(part.program));
  }
  out << std::flush;
  if (!programs.empty() &&
      agrees(options, "Shall " + programs + " let them through, and nothing else?", terminal)) {
    all.step(
        [&] {
          allowInFirewall({files.yaml(), false}, *config);
        },
        [file = files.yaml()] { removeFromFirewall(file); });
    answer.allowed = true;
    out << programs << " lets them through; 'braidctl firewall remove " << files.yaml()
        << "' takes that back\n";
  }
  answer.warnings = firewallWarnings(files.yaml(), *config);
  for (const std::string& warning : answer.warnings)
    out << paragraph("warning: this host's firewall: " + printable(warning));
  return answer;
}

namespace {

// What the user types who starts a gateway himself.
std::string startWords(const NewGateway& options, const GatewayFiles& files) {
  if (hasUnit(options)) return "systemctl enable --now braid@" + files.name;
  if (!hasInitScript()) return "braidd --config " + files.yaml();
  return "uci set braid.@gateway[0].yaml=" + files.yaml() +
         "; uci set braid.@gateway[0].enabled=1; uci commit braid; /etc/init.d/braid enable; " +
         startCommand(files.name);
}

// Why a unit does not start: the daemon's own line, else what systemctl says, and where to look.
std::string whyNotStarted(const std::string& name, std::time_t since, const std::string& said) {
  const std::string line = decisiveLine(readDaemonLog(name, since));
  if (!line.empty()) return ": " + line + ". ";
  const std::string first = printable(said.substr(0, said.find('\n')));
  return (first.empty() ? "; '" : ": " + first + "; '") + logCommand(name) + "' says why. ";
}

}  // namespace

bool startGateway(const NewGateway& options, const GatewayFiles& files, Transaction& all,
                  std::ostream& out) {
  if (options.noStart || !hasUnit(options)) {
    out << "start it with: " << startWords(options, files) << "\n";
    return false;
  }
  std::string name = options.name;
  // The unit has also applied the guard, which stopping it leaves.
  auto takeBack = [name, files] {
    stopUnit(name);
    std::ostringstream said;
    releaseGuard(files.yaml(), false, said);
  };
  all.step(
      [&] {
        const std::time_t begun = std::time(nullptr);
        std::string said, left;
        if (startUnit(name, said)) return;
        const std::string why = whyNotStarted(name, begun, said);
        try {
          takeBack();
        } catch (const std::runtime_error& e) {
          left = std::string("Its guard is left: ") + e.what();
        }
        try {
          Interruption::check();
        } catch (const std::runtime_error&) {
          if (left.empty()) throw;  // else it would say that nothing is left
        }
        throw std::runtime_error("braid@" + name + " does not start" + why +
                                 (left.empty() ? "Nothing of this attempt is left" : left));
      },
      takeBack);
  return true;
}

}  // namespace braid
