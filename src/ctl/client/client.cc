#include "ctl/client/client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "host/system.h"

namespace braid {
namespace {

constexpr timeval kTimeout{5, 0};
constexpr size_t kMaxAnswer = 16 << 20;  // twice the largest answer that a daemon sends

[[noreturn]] void failConnect(const std::string& socket, int error) {
  switch (error) {
    case ENOENT:
    case ECONNREFUSED:
      throw std::runtime_error("no daemon answers at " + socket +
                               "; is it running? (systemctl status 'braid@*')");
    case EACCES:
      throw NoPermission("no permission for " + socket + "; use root or join the socket's group");
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

}  // namespace

std::string configFile(const std::string& given) {
  bool isPath = given.find('/') != std::string::npos || given.ends_with(".yaml");
  return isPath ? given : std::string(kConfigFolder) + "/" + given + ".yaml";
}

std::string findSocket(const std::string& given, const std::string& folder) {
  namespace fs = std::filesystem;
  if (given.find('/') != std::string::npos) return given;
  if (!given.empty()) return folder + "/" + given + (given.ends_with(".sock") ? "" : ".sock");
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".sock") found.push_back(entry.path().string());
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    throw std::runtime_error("no control socket in " + folder +
                             "; is a daemon running? Name another with --socket");
  }
  std::sort(found.begin(), found.end());
  std::string names;
  for (const std::string& path : found) names += " " + fs::path(path).stem().string();
  throw std::runtime_error("several daemons run; name one with --socket:" + names);
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
