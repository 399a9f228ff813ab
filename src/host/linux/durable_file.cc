#include "host/linux/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "host/unique_fd.h"

namespace braid {

namespace {

bool writeEach(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Gives errno.
int syncNames(const std::string& folder) {
  UniqueFd names(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return names && ::fsync(names.get()) == 0 ? 0 : errno;
}

// Places a file whose bytes are on the disk before it has its name, and the name before anybody is told. The name that it
// has until then begins with a dot; what a crash leaves of it the next one overwrites. Gives errno.
template <typename Name>
int place(const std::string& path, std::string_view text, mode_t mode, Name&& name) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path(),
                        fresh = folder / ("." + std::filesystem::path(path).filename().string() + ".new");
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file) return errno;
  bool good = ::fchmod(file.get(), mode) == 0 && writeEach(file.get(), text) && ::fsync(file.get()) == 0 &&
              name(fresh.c_str(), path.c_str()) == 0;
  int error = good ? 0 : errno;
  ::unlink(fresh.c_str());
  return good ? syncNames(folder.string()) : error;
}

}  // namespace

std::string syncFolder(const std::string& folder) {
  int error = syncNames(folder);
  return error == 0 ? "" : "cannot write the folder " + folder + ": " + std::strerror(error);
}

std::string writeDurableFile(const std::string& path, std::string_view text, mode_t mode) {
  int error = place(path, text, mode, ::rename);
  return error == 0 ? "" : "cannot write " + path + ": " + std::strerror(error);
}

int newDurableFile(const std::string& path, std::string_view text, mode_t mode) {
  bool linked = false;
  auto name = [&](const char* fresh, const char* wanted) {
    int result = ::link(fresh, wanted);
    linked = result == 0;
    return result;
  };
  int error = place(path, text, mode, name);
  if (error != 0 && linked) ::unlink(path.c_str());
  return error;
}

}  // namespace braid
