#include "web/options.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "gateway/command_line.h"
#include "host/linux/files.h"
#include "host/system.h"
#include "web/site.h"

namespace braid {

namespace {

// The folder of systemd's credentials; empty: none.
std::string credentialsFolder() {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder ? folder : "";
}

// Takes one --listen. A bare address gets the usual port.
void addPlace(HttpPlaces& places, const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) {
    std::string path = text.substr(kUnix.size());
    if (!path.starts_with('/'))
      throw std::runtime_error("--listen " + text +
                               ": no complete path; use one such as unix:/run/braid-web.sock");
    return places.sockets.push_back(std::move(path));
  }
  if (auto endpoint = Endpoint::parse(text)) return places.tcp.push_back(*endpoint);
  if (auto address = Address::parse(text))
    return places.tcp.push_back({*address, WebOptions::kPort});
  throw std::runtime_error(
      "--listen " + text +
      ": no address; use ADDRESS:PORT, such as 127.0.0.1:9380 or [::1]:9380, or unix:PATH");
}

bool isLoopback(const Address& address) {
  return address == *Address::parse("::1") || (address.isV4() && address.bytes[0] == 127);
}

// The token: the first line of the file.
std::string readToken(const std::string& file) {
  std::string text = readSecretFile("--token-file", file), token = text.substr(0, text.find('\n'));
  if (!token.empty() && token.back() == '\r') token.pop_back();
  if (token.size() < Access::kShortestToken)
    throw std::runtime_error("--token-file " + file + ": a token has " +
                             std::to_string(Access::kShortestToken) +
                             " characters at least; openssl rand -hex 24 makes one");
  return token;
}

// systemd puts credentials into a folder for this service only. A name without a folder means a
// file there.
std::string credential(const std::string& file) {
  std::string folder = credentialsFolder();
  return !folder.empty() && !file.empty() && file.find('/') == std::string::npos
             ? folder + "/" + file
             : file;
}

}  // namespace

// Checks the open file, not the name.
std::string readSecretFile(const std::string& option, const std::string& path) {
  constexpr size_t kMost = 64 << 10;
  auto fail = [&](const std::string& why) {
    throw std::runtime_error(option + " " + path + ": " + why);
  };
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0)
    fail(std::string("cannot be read: ") + std::strerror(errno) + "; correct the path");
  if (!S_ISREG(info.st_mode)) fail("is not a file; correct the path");
  if (!isPrivate(file.get(), info, path, credentialsFolder()))
    fail("others than its owner can read it; run: chmod 600 " + path);
  std::string text(kMost, '\0');
  ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) fail(std::string("cannot be read: ") + std::strerror(errno) + "; check the disk");
  text.resize(static_cast<size_t>(got));
  return text;
}

std::string dangerOf(const WebOptions& options) {
  bool open = std::ranges::any_of(options.listen.tcp,
                                  [](const Endpoint& e) { return !isLoopback(e.address); });
  bool hasTls = !options.certificate.empty() && !options.key.empty();
  if (options.certificate.empty() != options.key.empty())
    return "--certificate and --key go together";
  if (!open || (hasTls && !options.token.empty())) return {};
  return "anybody could look from outside: an address that is not a loopback one needs "
         "--token-file, "
         "--certificate and "
         "--key";
}

std::optional<WebOptions> readWebOptions(int argc, const char* const* argv, int& exitCode) {
  Program app{"braid-web",
              "braid-web " BRAID_VERSION,
              "Shows what a gateway of Braid does: a live page, figures for Prometheus, and JSON.",
              {"braid-web             # http://127.0.0.1:9380 shows the only gateway here",
               "braid-web edge --listen 127.0.0.1:9381   # braid@edge, at another port"}};
  WebOptions options;
  std::string socket, tokenFile;
  std::vector<std::string> listen;
  app.add_option("SOCKET,--socket", socket,
                 "Control socket of the daemon: a path, or NAME for /run/braid/NAME.sock")
      ->type_name("SOCKET");
  app.add_option("--listen", listen,
                 "ADDRESS:PORT or unix:PATH to serve at, again for more; 127.0.0.1:9380")
      ->type_name("PLACE");
  app.add_option("--group", options.listen.group,
                 "Group whose members may use the Unix sockets of --listen")
      ->type_name("GROUP");
  app.add_option("--host", options.hosts,
                 "Name of this host in browsers, again for more; its addresses are known")
      ->type_name("NAME");
  app.add_option("--token-file", tokenFile,
                 "File with the token that a browser or Prometheus must give")
      ->type_name("FILE");
  app.add_option("--certificate", options.certificate,
                 "Certificates for TLS (PEM), the host's own first")
      ->type_name("FILE");
  app.add_option("--key", options.key, "Private key for TLS (PEM)")->type_name("FILE");
  app.add_option("--log-level", options.logLevel, "trace, debug, info, warning, error")
      ->type_name("LEVEL")
      ->check(oneOf({"trace", "debug", "info", "warning", "error"}));
  if (auto ended = app.read(argc, argv, std::cout, std::cerr)) {
    exitCode = *ended;
    return std::nullopt;
  }
  if (listen.empty()) listen = {"127.0.0.1"};
  for (const std::string& each : listen) addPlace(options.listen, each);
  if (!options.listen.group.empty() && options.listen.sockets.empty())
    throw std::runtime_error("--group needs a Unix socket: --listen unix:PATH");
  options.certificate = credential(options.certificate);
  options.key = credential(options.key);
  if (!tokenFile.empty()) options.token = readToken(credential(tokenFile));
  if (std::string danger = dangerOf(options); !danger.empty()) throw std::runtime_error(danger);
  options.socket = findSocket(socket);
  return options;
}

}  // namespace braid
