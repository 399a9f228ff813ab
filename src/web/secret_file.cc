#include "web/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "host/linux/files.h"
#include "host/system.h"

namespace braid {

std::string credentialsFolder() {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder ? folder : "";
}

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

}  // namespace braid
