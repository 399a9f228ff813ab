// The configuration reader on any text: no exception, no crash, and every error has a reason and a
// remedy. Text after a 0 byte is a configuration fragment, which is read from a folder, too.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_fragments.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/temporary_folder.h"

namespace {

using namespace braid;
using fuzz::require;

// A folder with files that are no fragments: a link, a folder, a hidden file, and another kind.
const TemporaryFolder& folder() {
  static const TemporaryFolder* made = [] {
    static const TemporaryFolder folder;
    folder.write("peers.d/.hidden.yaml", "");
    folder.write("peers.d/notes.txt", "");
    folder.write("peers.d/folder.yaml/within", "");
    std::filesystem::create_symlink("notes.txt", folder.path() / "peers.d/link.yaml");
    return &folder;
  }();
  return *made;
}

// Lays the fragments into the folder, and reads them.
void checkFolder(const std::vector<ConfigText>& fragments) {
  for (const ConfigText& each : fragments) folder().write(each.file, each.text);
  ConfigDiagnostics out("main");
  const std::vector<ConfigText> read = readFragments(folder().file("peers.d"), out);
  require(std::ranges::equal(read, fragments, {}, &ConfigText::text, &ConfigText::text),
          "a folder is read as other fragments");
  require(out.take().size() == 2, "a link or a folder is taken for a fragment");
  for (const ConfigText& each : fragments) std::filesystem::remove(folder().file(each.file));
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  LoadOptions options;
  options.checkIdentity = false;  // reads no other files
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ConfigText> fragments;
  size_t end = text.find('\0');
  for (size_t at = end; at != std::string_view::npos && fragments.size() < 8;) {
    size_t next = text.find('\0', at + 1);
    std::string name = "peers.d/" + std::to_string(fragments.size()) + ".yaml";
    fragments.push_back(
        {name,
         std::string(text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1))});
    at = next;
  }
  if (!fragments.empty()) checkFolder(fragments);
  ConfigResult result = parseConfig(text.substr(0, end), "fuzz.yaml", options, fragments);
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    require(!errors->empty(), "refused without a reason");
    for (const ConfigError& error : *errors) {
      require(!error.problem.empty() && !error.remedy.empty(), "an error without words");
      require(error.line <= size + 1 && error.column <= size + 2, "an error outside of the text");
    }
  } else {
    const auto& config = std::get<Config>(result);
    require(!config.peers.empty() || !config.listen.empty(),
            "a configuration without peers that waits for none");
    require(!config.uplinks.empty() || !config.listen.empty(),
            "a configuration without a way out or in");
    for (const UplinkConfig& uplink : config.uplinks) {
      require(uplink.subflows >= 1 && uplink.subflows <= 8, "subflows out of range");
      require(uplink.interface.size() < 128, "interface name too long");
      require(uplink.interface.empty() + uplink.mac.empty() + uplink.path.empty() == 2,
              "an interface that is named by none or several");
    }
  }
}
