#include "host/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

}  // namespace

std::string syncFolder(const std::string& folder) {
  UniqueFd place(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place && ::fsync(place.get()) == 0) return {};
  return "cannot write the folder " + folder + ": " + std::strerror(errno);
}

// The bytes are on the disk before they have the file's name, and the name is before anybody is told. The name that they
// have until then begins with a dot; what a crash leaves of it the next one overwrites.
std::string writeDurableFile(const std::string& path, std::string_view text, mode_t mode) {
  std::filesystem::path place(path);
  std::string folder = place.parent_path().string(),
              fresh = (place.parent_path() / ("." + place.filename().string() + ".new")).string();
  if (folder.empty()) folder = ".";
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  bool whole = file && writeEach(file.get(), text) && ::fsync(file.get()) == 0 &&
               ::rename(fresh.c_str(), path.c_str()) == 0;
  if (whole) return syncFolder(folder);
  std::string problem = "cannot write " + path + ": " + std::strerror(errno);
  if (file) ::unlink(fresh.c_str());
  return problem;
}

}  // namespace braid
