#include "ctl/new_gateway.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <stdexcept>

#include "ctl/service.h"
#include "gateway/config/config.h"
#include "host/unique_fd.h"

namespace braid {

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
      throw std::runtime_error("'" + text + "' is no network; write one such as 192.168.1.0/24, or none");
    if (text.find('/') != std::string::npos && network->toString() != text)
      throw std::runtime_error("'" + text + "' has host bits set; the network is " + network->toString());
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

std::string problemsOfFile(const std::string& path) {
  ConfigResult result = loadConfig(path);
  std::string text;
  if (auto* errors = std::get_if<ConfigErrors>(&result)) {
    for (const ConfigError& error : *errors) text += (text.empty() ? "" : "\n") + error.toString();
  }
  return text;
}

}  // namespace

GatewayFiles newFiles(const NewGateway& options) {
  bool plain = !options.name.empty() && options.name.size() <= 32 && options.name.front() != '.' &&
               options.name.front() != '-' && std::ranges::all_of(options.name, [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        c == '.' || c == '_' || c == '-';
               });
  if (!plain) throw std::runtime_error("--name must be 1 to 32 letters, digits, dots, dashes or underscores");
  GatewayFiles files{options.folder, options.name};
  if (isThere(files.yaml()))
    throw std::runtime_error(files.yaml() +
                             " is there already; choose another name with --name, or remove it");
  if (options.dryRun) return files;
  if (mkdir(options.folder.c_str(), 0755) != 0 && errno != EEXIST)
    throw std::runtime_error(options.folder + ": cannot be made: " + std::strerror(errno) + "; use root");
  if (access(options.folder.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error(options.folder + ": cannot be written: " + std::strerror(errno) + "; use root");
  return files;
}

std::vector<Prefix> chooseNetworks(const NewGateway& options, const std::vector<Prefix>& found,
                                   UserTerminal& terminal) {
  if (!options.networks.empty()) return parseNetworks(options.networks);
  if (options.yes || found.empty()) return found;
  std::optional<std::string> answer =
      terminal.ask("Networks behind this gateway (none: only this machine) [" + listed(found) + "]: ");
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

// What is there already was left by an attempt that was killed, or made by hand.
Identity prepareIdentity(const GatewayFiles& files, Transaction& all) {
  if (!isThere(files.key()) || !isThere(files.certificate())) {
    all.step([&] { generateIdentity(files.key(), files.certificate(), files.name); },
             [files] {
               unlink(files.key().c_str());
               unlink(files.certificate().c_str());
             });
  }
  return loadIdentity(files.key(), files.certificate());
}

void putYaml(const GatewayFiles& files, const std::string& yaml, Transaction& all) {
  std::string path = files.yaml(), fresh = files.folder + "/." + files.name + ".yaml.new";
  auto write = [&] {
    UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    // Whatever the umask: the daemon is another user, and nothing in it is secret.
    bool ok = file && fchmod(file.get(), 0644) == 0 &&
              ::write(file.get(), yaml.data(), yaml.size()) == static_cast<ssize_t>(yaml.size()) &&
              fsync(file.get()) == 0 && link(fresh.c_str(), path.c_str()) == 0;
    int error = errno;
    unlink(fresh.c_str());
    if (!ok)
      throw std::runtime_error(path + ": cannot be written: " + std::strerror(error) + "; check the disk");
  };
  all.step(write, [path] { unlink(path.c_str()); });
  if (std::string problems = problemsOfFile(path); !problems.empty()) throw std::runtime_error(problems);
}

bool startGateway(const NewGateway& options, const GatewayFiles& files, Transaction& all, std::ostream& out) {
  bool isUsual = options.folder == "/etc/braid";  // where the unit looks
  if (options.noStart || !isUsual || !hasSystemd()) {
    out << "start it with: braidd --config " << files.yaml() << "\n";
    return false;
  }
  std::string name = options.name;
  all.step(
      [&] {
        if (startUnit(name)) return;
        stopUnit(name);
        throw std::runtime_error("braid@" + name + " does not start; 'journalctl -u braid@" + name +
                                 "' says why. Nothing of this attempt is left");
      },
      [name] { stopUnit(name); });
  return true;
}

}  // namespace braid
