// The file of known initiators with any content: it must be rejected, or be unchanged after it is
// written again. What a store saves, the next one loads, whatever was there before.
//
// Input: the file's content; after a 0 byte, what is at its place: a missing folder, a folder, a
// symbolic link, a file without content, or (as without that byte) the file.

#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/state/initiator_store.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/temporary_folder.h"

namespace {

using namespace braid;
namespace fs = std::filesystem;
using Initiators = std::vector<StoredInitiator>;

enum class Place : uint8_t { kFile, kNoFolder, kFolder, kLink, kNothing, kCount };

std::optional<Initiators> read(std::string_view text) {
  try {
    return InitiatorStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Initiators> load(const InitiatorStore& store) {
  try {
    return store.load();
  } catch (const std::runtime_error& refused) {
    CHECK(std::string_view(refused.what()).find(store.path()) != std::string_view::npos);
    return std::nullopt;
  }
}

void lay(const TemporaryFolder& folder, const std::string& path, Place place,
         std::string_view text) {
  fs::remove_all(path);
  switch (place) {
    case Place::kFolder:
      fs::create_directory(path);
      folder.write("state/within", "");
      break;
    case Place::kLink:
      fs::create_symlink(folder.file("elsewhere"), path);
      folder.write("elsewhere", std::string(text));
      break;
    case Place::kNothing:
      folder.write("state", "");
      break;
    case Place::kNoFolder:
      break;
    default:
      folder.write("state", std::string(text));
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  static const TemporaryFolder folder;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Place place = Place::kFile;
  if (const size_t end = text.find('\0'); end != std::string_view::npos) {
    if (end + 1 < size)
      place = static_cast<Place>(data[end + 1] % static_cast<size_t>(Place::kCount));
    text = text.substr(0, end);
  }
  const std::optional<Initiators> initiators = read(text);
  if (initiators) CHECK(read(InitiatorStore::format(*initiators)) == initiators);

  const std::string path = folder.file(place == Place::kNoFolder ? "none/state" : "state");
  lay(folder, path, place, text);
  InitiatorStore store(path);
  const std::optional<Initiators> loaded = load(store);
  if (place == Place::kFile) CHECK(loaded == (text.empty() ? Initiators{} : initiators));
  if (place == Place::kFolder || place == Place::kLink) CHECK(!loaded);
  const Initiators written = initiators.value_or(Initiators{});
  const bool canWrite = place != Place::kNoFolder && place != Place::kFolder;
  for (int times = 0; times < 2; ++times) CHECK(store.save(written).empty() == canWrite);
  if (canWrite) CHECK(load(InitiatorStore(path)) == written);
  if (place == Place::kLink)
    CHECK(!fs::is_symlink(path) && fs::file_size(folder.file("elsewhere")) == text.size());
}
