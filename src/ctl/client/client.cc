#include "ctl/client/client.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <variant>
#include <vector>

#include "base/nearest_word.h"
#include "ctl/client/daemon_log.h"
#include "ctl/client/service.h"
#include "gateway/config/config.h"
#include "host/system.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr timeval kTimeout{5, 0};
constexpr size_t kMaxAnswer = 16 << 20;  // twice the largest answer that a daemon sends

// Names the group that owns the socket; of one that cannot be seen, that of its folder.
std::string noPermission(const std::string& path) {
  struct stat info {};
  const bool known =
      stat(path.c_str(), &info) == 0 || stat(fs::path(path).parent_path().c_str(), &info) == 0;
  const group* owner = known && info.st_gid != 0 ? getgrgid(info.st_gid) : nullptr;
  const std::string name = owner ? owner->gr_name : "";
  return "no permission for " + path + "; use sudo" +
         (owner ? ", or join group " + name + ": sudo usermod -aG " + name +
                      " $USER, and log in again"
                : "");
}

// The stems of the files of a folder with that extension, in order.
std::vector<std::string> namesIn(const std::string& folder, const char* extension,
                                 std::error_code& error) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == extension) out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

// `control.socket` of a configuration; empty: it cannot be read, or has mistakes.
std::string socketOf(const std::string& config) {
  LoadOptions options;
  options.checkIdentity = false;
  const ConfigResult result = loadConfig(config, options);
  const auto* good = std::get_if<Config>(&result);
  return good ? good->control.socket : "";
}

// The name of the configuration in /etc/braid with this control socket; empty: none has it.
std::string gatewayAt(const std::string& socket) {
  std::error_code ignored;
  for (const std::string& name : namesIn(kConfigFolder, ".yaml", ignored))
    if (socketOf(configFile(name)) == socket) return name;
  return "";
}

// "; start it: COMMAND", and what the daemon's log ends with if that is an error.
std::string howToStart(const std::string& name) {
  const std::time_t dayBefore = std::time(nullptr) - 86400;
  const std::vector<LogLine> log = readDaemonLog(name, dayBefore);
  const bool failed = !log.empty() && log.back().text == decisiveLine(log);
  return "; start it: " + startCommand(name) +
         (hasInitScript() ? ", with option enabled '1' in /etc/config/braid" : "") +
         (failed ? ". Its log ends with: " + log.back().text : "");
}

[[noreturn]] void failConnect(const std::string& socket, int error) {
  switch (error) {
    case ENOENT:
    case ECONNREFUSED: {
      const std::string name = gatewayAt(socket);
      throw std::runtime_error(
          "no daemon answers at " + socket +
          (name.empty() ? "; start it, or correct --socket" : howToStart(name)));
    }
    case EACCES:
      throw NoPermission(noPermission(socket));
    default:
      throw std::runtime_error(socket + ": " + std::strerror(error) + "; is the daemon running?");
  }
}

UniqueFd connectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::runtime_error(path + ": too long for a socket's path");
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    failConnect(path, errno);
  return fd;
}

// Ignores a failure: it shows when the answer is read.
void sendRequest(int fd, std::string request, int descriptor) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  iovec part{request.data(), request.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  sendmsg(fd, &message, MSG_NOSIGNAL);
}

std::string readLine(int fd, const std::string& socket) {
  std::string line;
  std::vector<char> bytes(1 << 16);
  while (line.empty() || line.back() != '\n') {
    ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw std::runtime_error(socket + ": no answer: " + std::strerror(errno) +
                               "; is the daemon busy?");
    if (got == 0)
      throw std::runtime_error(socket + ": the daemon closed the connection; look into its log");
    line.append(bytes.data(), static_cast<size_t>(got));
    if (line.size() > kMaxAnswer)
      throw std::runtime_error(socket + ": the answer has no end; is this a braidd?");
  }
  return line;
}

nlohmann::json request(const std::string& socket, const nlohmann::json& line, int descriptor) {
  UniqueFd fd = connectTo(socket);
  // A daemon with too many clients answers and closes without reading. So read the answer even when
  // sending failed.
  sendRequest(fd.get(), line.dump() + "\n", descriptor);
  nlohmann::json answer = nlohmann::json::parse(readLine(fd.get(), socket), nullptr, false);
  if (!answer.is_object())
    throw std::runtime_error(socket + ": the answer is no JSON; is this a braidd?");
  if (answer.value("ok", nlohmann::json()) == true) return answer;
  auto reason = answer.find("error");
  throw std::runtime_error(reason != answer.end() && reason->is_string()
                               ? reason->get<std::string>()
                               : socket + ": refused without a reason");
}

// " a b"
std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += " " + name;
  return out;
}

// Whether there may be a socket: also one that this user cannot see.
bool mayBeThere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) || error == std::errc::permission_denied;
}

// What runs here, and what could run.
struct Gateways {
  std::string folder, configs;         ///< of sockets and of configurations
  std::vector<std::string> running;    ///< names of sockets in `folder`
  std::vector<std::string> made;       ///< names of configurations
  std::vector<std::string> elsewhere;  ///< sockets of configurations that are not in `folder`

  std::string socketIn(const std::string& name) const { return folder + "/" + name + ".sock"; }
  std::string configOf(const std::string& name) const { return configs + "/" + name + ".yaml"; }

  [[noreturn]] void failNotRunning() const {
    std::string text = "no control socket in " + folder;
    for (const std::string& socket : elsewhere) text += ", nor at " + socket;
    text += ": no daemon runs";
    if (made.empty()) text += "; 'braidctl setup' or 'braidctl join' makes a gateway";
    // The service of OpenWrt runs one gateway, and keeps a copy of its configuration there.
    if (!made.empty() && (made.size() == 1 || hasInitScript())) text += howToStart(made[0]);
    if (made.size() > 1 && !hasInitScript())
      text += "; start one: " + startCommand("NAME") + ", of" + joined(made);
    throw std::runtime_error(text);
  }
  [[noreturn]] void failUnknown(const std::string& name) const {
    std::vector<std::string> known = running;
    for (const std::string& each : made)
      if (std::ranges::find(known, each) == known.end()) known.push_back(each);
    if (known.empty()) failNotRunning();
    const std::vector<std::string_view> words(known.begin(), known.end());
    const std::string_view meant = nearestWord(name, words);
    throw std::runtime_error("there is no gateway " + name + ": neither " + socketIn(name) +
                             " nor " + configOf(name) +
                             (meant.empty() ? "; name one with --socket:" + joined(known)
                                            : "; did you mean " + std::string(meant) + "?"));
  }
};

Gateways lookAround(const std::string& folder, const std::string& configs) {
  Gateways found{folder, configs, {}, {}, {}};
  std::error_code error, ignored;
  found.running = namesIn(folder, ".sock", error);
  if (error == std::errc::permission_denied) throw NoPermission(noPermission(folder));
  found.made = namesIn(configs, ".yaml", ignored);
  for (const std::string& name : found.made) {
    const std::string socket = socketOf(found.configOf(name));
    const bool isNew = std::ranges::find(found.elsewhere, socket) == found.elsewhere.end();
    if (!socket.empty() && isNew && fs::path(socket).parent_path() != kRunFolder &&
        fs::path(socket).parent_path() != folder)
      found.elsewhere.push_back(socket);
  }
  return found;
}

std::string socketNamed(const std::string& name, const std::string& folder,
                        const std::string& configs) {
  const Gateways all{folder, configs, {}, {}, {}};
  if (mayBeThere(all.socketIn(name))) return all.socketIn(name);
  if (!mayBeThere(all.configOf(name))) lookAround(folder, configs).failUnknown(name);
  const std::string socket = socketOf(all.configOf(name));
  return socket.empty() ? all.socketIn(name) : socket;
}

}  // namespace

std::string configFile(const std::string& given) {
  bool isPath = given.find('/') != std::string::npos || given.ends_with(".yaml");
  return isPath ? given : std::string(kConfigFolder) + "/" + given + ".yaml";
}

std::string findSocket(const std::string& given, const std::string& folder,
                       const std::string& configs) {
  if (given.find('/') != std::string::npos) return given;
  if (!given.empty())
    return socketNamed(given.ends_with(".sock") ? given.substr(0, given.size() - 5) : given, folder,
                       configs);
  const Gateways all = lookAround(folder, configs);
  std::vector<std::string> sockets;  // as --socket takes them
  for (const std::string& name : all.running) sockets.push_back(name);
  for (const std::string& path : all.elsewhere)
    if (mayBeThere(path)) sockets.push_back(path);
  if (sockets.empty()) all.failNotRunning();
  if (sockets.size() > 1)
    throw std::runtime_error("several daemons run; name one with --socket:" + joined(sockets));
  return all.running.empty() ? sockets[0] : all.socketIn(sockets[0]);
}

nlohmann::json ask(const std::string& socket, const std::string& cmd, int descriptor) {
  return request(socket, {{"cmd", cmd}}, descriptor);
}

nlohmann::json askWith(const std::string& socket, const std::string& cmd,
                       const nlohmann::json& arguments) {
  nlohmann::json line = arguments;
  line["cmd"] = cmd;
  return request(socket, line, -1);
}

}  // namespace braid
