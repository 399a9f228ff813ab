#include "ctl/client/host_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
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

// The path that nameOf() made this name of, with the ending .yaml. "---" stands for "-/" and for
// "/-", and is taken for the first.
std::string configOf(const std::string& name) {
  std::string out = "/";
  for (size_t i = 0; i < name.size(); ++i) {
    bool isPair = name.compare(i, 2, "--") == 0;
    out += name[i] != '-' ? name[i] : isPair ? '-' : '/';
    i += isPair;
  }
  return out + ".yaml";
}

}  // namespace

void writeWords(std::ostream& out, const std::vector<std::string>& words) {
  for (const std::string& word : words) out << std::quoted(word) << ' ';
}

std::vector<std::string> readWords(std::istream& in) {
  std::vector<std::string> words;
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  return words;
}

HostRecord::HostRecord(const std::string& config, const std::string& kind)
    : path_(std::string(kFolder) + "/" + nameOf(config) + "." + kind) {}

std::vector<std::string> HostRecord::read() const {
  std::ifstream in(path_);
  return readWords(in);
}

bool HostRecord::write(const std::vector<std::string>& words) const {
  std::error_code ignored;  // the file tells
  fs::create_directory(kFolder, ignored);
  std::ofstream out(path_);
  writeWords(out, words);
  out << '\n' << std::flush;
  return out.good();
}

std::vector<std::string> HostRecord::configsWith(const std::string& kind, const std::string& root) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root + kFolder, error))
    if (entry.path().extension() == "." + kind) out.push_back(configOf(entry.path().stem()));
  std::sort(out.begin(), out.end());
  return out;
}

void HostRecord::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(kFolder, ignored);  // only when it is empty
}

KeptConfig::KeptConfig(const std::string& config)
    : config_(config), path_(std::string(kKeptFolder) + "/" + nameOf(config) + ".yaml") {}

std::optional<std::string> KeptConfig::read() const {
  return textOfFile(path_);
}

void KeptConfig::keep() const {
  std::optional<std::string> text = textOfFile(config_);
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
