#include "ctl/client/host_record.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "host/linux/files.h"

namespace braid {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFolder = "/run/braid-host";
constexpr const char* kKeptFolder = "/var/lib/braid-host";

// "etc-braid-edge" for /etc/braid/edge.yaml.
std::string nameOf(const std::string& config) {
  std::string out;
  for (char c : fs::absolute(config).lexically_normal().replace_extension().string().substr(1))
    out += c == '/' ? "-" : c == '-' ? "--" : std::string(1, c);
  return out;
}

std::optional<std::string> textOf(const std::string& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return in.bad() ? std::nullopt : std::optional(std::move(text));
}

}  // namespace

std::string escapedWord(const std::string& word) {
  std::string out;
  for (char c : word) {
    if (std::strchr(" \t\n\v\f\r\\", c) == nullptr) {
      out += c;
      continue;
    }
    out += '\\';
    for (int shift : {6, 3, 0})
      out += static_cast<char>('0' + (static_cast<unsigned char>(c) >> shift & 7));
  }
  return out;
}

std::string unescapedWord(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* begin = text.data() + at + 1;
    bool isEscape = text[at] == '\\' && at + 3 < text.size() &&
                    std::from_chars(begin, begin + 3, value, 8).ptr == begin + 3 && value < 256;
    out += isEscape ? static_cast<char>(value) : text[at];
    if (isEscape) at += 3;
  }
  return out;
}

HostRecord::HostRecord(const std::string& config, const std::string& kind)
    : path_(std::string(kFolder) + "/" + nameOf(config) + "." + kind) {}

std::vector<std::string> HostRecord::read() const {
  std::ifstream in(path_);
  std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  for (std::string& word : words) word = unescapedWord(word);
  return words;
}

bool HostRecord::write(const std::vector<std::string>& words) const {
  std::error_code ignored;  // the file tells
  fs::create_directory(kFolder, ignored);
  std::ofstream out(path_);
  for (const std::string& word : words) out << escapedWord(word) << ' ';
  out << '\n' << std::flush;
  return out.good();
}

void HostRecord::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(kFolder, ignored);  // only when it is empty
}

KeptConfig::KeptConfig(const std::string& config)
    : config_(config), path_(std::string(kKeptFolder) + "/" + nameOf(config) + ".yaml") {}

std::optional<std::string> KeptConfig::read() const {
  return textOf(path_);
}

void KeptConfig::keep() const {
  std::optional<std::string> text = textOf(config_);
  if (!text || text == read()) return;
  std::error_code ignored;
  fs::create_directory(kKeptFolder, ignored);
  writeDurableFile(path_, *text, 0600);
}

void KeptConfig::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(kKeptFolder, ignored);  // only when it is empty
}

}  // namespace braid
