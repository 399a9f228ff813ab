#include "ctl/client/client.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "ctl/client/service.h"
#include "host/system.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr timeval kTimeout{5, 0};
constexpr size_t kMaxAnswer = 16 << 20;  // twice the largest answer that a daemon sends

// The command that starts the daemon of /etc/braid/NAME.yaml.
std::string startCommand(const std::string& name) {
  return hasSystemd() ? "systemctl start braid@" + name : "braidd /etc/braid/" + name + ".yaml";
}

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

[[noreturn]] void failConnect(const std::string& socket, int error) {
  const fs::path path = socket;
  switch (error) {
    case ENOENT:
    case ECONNREFUSED:
      throw std::runtime_error("no daemon answers at " + socket + "; start it" +
                               (path.parent_path() == kRunFolder
                                    ? ": " + startCommand(path.stem().string())
                                    : ", or correct --socket"));
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

// The stems of the files of a folder with that extension, in order.
std::vector<std::string> namesIn(const std::string& folder, const char* extension,
                                 std::error_code& error) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == extension) out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

// " a b"
std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += " " + name;
  return out;
}

}  // namespace

std::string configFile(const std::string& given) {
  bool isPath = given.find('/') != std::string::npos || given.ends_with(".yaml");
  return isPath ? given : std::string(kConfigFolder) + "/" + given + ".yaml";
}

std::string findSocket(const std::string& given, const std::string& folder,
                       const std::string& configs) {
  if (given.find('/') != std::string::npos) return given;
  if (!given.empty()) return folder + "/" + given + (given.ends_with(".sock") ? "" : ".sock");
  std::error_code error;
  const std::vector<std::string> found = namesIn(folder, ".sock", error);
  if (error == std::errc::permission_denied) throw NoPermission(noPermission(folder));
  if (found.size() == 1) return folder + "/" + found[0] + ".sock";
  if (!found.empty())
    throw std::runtime_error("several daemons run; name one with --socket:" + joined(found));
  std::error_code ignored;
  const std::vector<std::string> gateways = namesIn(configs, ".yaml", ignored);
  throw std::runtime_error(
      "no control socket in " + folder + ": no daemon runs; " +
      (gateways.empty()       ? "'braidctl setup' or 'braidctl join' makes a gateway"
       : gateways.size() == 1 ? "start it: " + startCommand(gateways[0])
                              : "start one: " + startCommand("NAME") + ", of" + joined(gateways)));
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
