#include "ctl/client/host_record.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace braid {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFolder = "/run/braid-host";

// "etc-braid-edge" for /etc/braid/edge.yaml.
std::string nameOf(const std::string& config) {
  std::string out;
  for (char c : fs::absolute(config).lexically_normal().replace_extension().string().substr(1))
    out += c == '/' ? "-" : c == '-' ? "--" : std::string(1, c);
  return out;
}

}  // namespace

HostRecord::HostRecord(const std::string& config, const std::string& kind)
    : path_(std::string(kFolder) + "/" + nameOf(config) + "." + kind) {}

std::vector<std::string> HostRecord::read() const {
  std::ifstream in(path_);
  return {std::istream_iterator<std::string>(in), {}};
}

bool HostRecord::write(const std::vector<std::string>& words) const {
  std::error_code ignored;  // the file tells
  fs::create_directory(kFolder, ignored);
  std::ofstream out(path_);
  for (const std::string& word : words) out << word << ' ';
  out << '\n' << std::flush;
  return out.good();
}

void HostRecord::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(kFolder, ignored);  // only when it is empty
}

}  // namespace braid
