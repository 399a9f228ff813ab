#include "gateway/join/join_messages.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/printable.h"
#include "gateway/config/config_fragments.h"
#include "host/linux/files.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr uint8_t kFormat = 1;

void writeAddress(Writer& out, const Address& address) {
  out.u8(address.isV4() ? 4 : 6);
  out.bytes(address.view());
}

void writeText(Writer& out, const std::string& text) {
  size_t size = std::min(text.size(), kMaxJoinText);
  out.u8(static_cast<uint8_t>(size));
  out.bytes({reinterpret_cast<const uint8_t*>(text.data()), size});
}

void writePrefixes(Writer& out, const std::vector<Prefix>& prefixes) {
  out.u8(static_cast<uint8_t>(prefixes.size()));
  for (const Prefix& prefix : prefixes) {
    writeAddress(out, prefix.address);
    out.u8(static_cast<uint8_t>(prefix.length));
  }
}

// Reads a message's fields in turn; a malformed message is reported at the end.
class Fields {
 public:
  explicit Fields(ByteView bytes) : in_(bytes) { good_ = in_.u8() == kFormat; }
  Reader& in() { return in_; }
  bool isWhole() const { return good_ && in_.ok() && in_.remaining() == 0; }

  Address address() {
    uint8_t version = in_.u8();
    ByteView bytes = in_.take(version == 4 ? 4 : 16);
    if ((version != 4 && version != 6) || bytes.empty()) return good_ = false, Address{};
    return version == 4 ? Address::v4(bytes) : Address::v6(bytes);
  }
  unsigned length(const Address& address) {
    unsigned length = in_.u8();
    good_ &= length <= address.bits();
    return length;
  }
  std::string text() {
    ByteView bytes = in_.take(in_.u8());
    return printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  size_t count(size_t most) {
    size_t count = in_.u8();
    good_ &= count <= most;
    return good_ ? count : 0;
  }
  std::vector<Prefix> prefixes() {
    std::vector<Prefix> out;
    for (size_t left = count(kMaxJoinNetworks); left > 0; --left) {
      Prefix prefix;
      prefix.address = address();
      prefix.length = length(prefix.address);
      good_ &= Prefix::parse(prefix.toString()) == prefix;  // no host bits
      out.push_back(prefix);
    }
    return out;
  }

 private:
  Reader in_;
  bool good_;
};

JoinMessage written(const std::array<uint8_t, kMaxJoinMessage>& bytes, const Writer& out) {
  return out.ok()
             ? JoinMessage(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(out.size()))
             : JoinMessage{};
}

}  // namespace

JoinMessage wishOf(const std::vector<Prefix>& networks) {
  std::array<uint8_t, kMaxJoinMessage> bytes;
  Writer out(bytes);
  writePrefixes(out, networks);
  return written(bytes, out);
}

JoinMessage writeRequest(const JoinRequest& request) {
  std::array<uint8_t, kMaxJoinMessage> bytes;
  Writer out(bytes);
  out.u8(kFormat);
  out.bytes(request.id);
  out.bytes(request.signature);
  out.bytes(wishOf(request.networks));
  return written(bytes, out);
}

std::optional<JoinRequest> readRequest(ByteView bytes) {
  Fields fields(bytes);
  JoinRequest out;
  ByteView id = fields.in().take(out.id.size()), signature = fields.in().take(out.signature.size());
  if (!fields.in().ok()) return std::nullopt;
  std::ranges::copy(id, out.id.begin());
  std::ranges::copy(signature, out.signature.begin());
  out.networks = fields.prefixes();
  if (!fields.isWhole()) return std::nullopt;
  return out;
}

JoinMessage writeAnswer(const JoinAnswer& answer) {
  std::array<uint8_t, kMaxJoinMessage> bytes;
  Writer out(bytes);
  out.u8(kFormat);
  out.u8(static_cast<uint8_t>(answer.code));
  writeText(out, answer.text);
  writeText(out, answer.name);
  out.u8(static_cast<uint8_t>(answer.concentrator.size()));
  for (const Address& address : answer.concentrator) writeAddress(out, address);
  out.u8(static_cast<uint8_t>(answer.edge.size()));
  for (const InterfaceAddress& a : answer.edge) {
    writeAddress(out, a.address);
    out.u8(static_cast<uint8_t>(a.length));
  }
  writePrefixes(out, answer.networks);
  return written(bytes, out);
}

bool isJoinName(std::string_view name) {
  constexpr size_t kLongest = 32;
  auto isGood = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongest && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, isGood);
}

std::optional<JoinAnswer> readAnswer(ByteView bytes) {
  Fields fields(bytes);
  JoinAnswer out;
  uint8_t code = fields.in().u8();
  if (code > static_cast<uint8_t>(JoinCode::kRefused))
    code = static_cast<uint8_t>(JoinCode::kRefused);
  out.code = static_cast<JoinCode>(code);
  out.text = fields.text();
  out.name = fields.text();
  for (size_t left = fields.count(kMaxJoinAddresses); left > 0; --left)
    out.concentrator.push_back(fields.address());
  for (size_t left = fields.count(kMaxJoinAddresses); left > 0; --left) {
    InterfaceAddress a;
    a.address = fields.address();
    a.length = fields.length(a.address);
    out.edge.push_back(a);
  }
  out.networks = fields.prefixes();
  if (!fields.isWhole() || (out.code == JoinCode::kJoined && !isJoinName(out.name)))
    return std::nullopt;
  return out;
}

namespace {

std::string yamlList(const std::vector<Prefix>& prefixes) {
  std::string text;
  for (const Prefix& prefix : prefixes)
    text += (text.empty() ? "\"" : ", \"") + prefix.toString() + "\"";
  return "[" + text + "]";
}

}  // namespace

std::string fragmentPath(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / (name + ".yaml")).string();
}

std::string formatFragment(const PeerFragment& peer) {
  std::string text = "# " + peer.origin + "\nname: \"" + peer.name +
                     "\"\npin: " + formatPin(peer.pin) + "\nprefixes: " + yamlList(peer.prefixes) +
                     "\n";
  if (!peer.routes.empty()) text += "routes: " + yamlList(peer.routes) + "\n";
  return text;
}

std::optional<std::string> readFragmentText(const std::string& path) {
  auto text = readConfigText(path, kMaxFragmentBytes, false);
  if (auto* found = std::get_if<std::string>(&text)) return std::move(*found);
  return std::nullopt;
}

// A join that was acknowledged must survive a power cut. The temporary file's name begins with a
// dot, so no reader takes it for a fragment.
std::string writeFragment(const std::string& path, const std::string& text) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (::mkdir(folder.c_str(), 0750) == 0) {
    if (std::string problem = syncFolder(folder.parent_path().string()); !problem.empty())
      return problem;
  } else if (errno != EEXIST) {
    return "cannot make the folder " + folder.string() + ": " + std::strerror(errno);
  }
  return writeDurableFile(path, text, 0600);
}

std::string removeFragment(const std::string& path) {
  if (::unlink(path.c_str()) == 0)
    return syncFolder(std::filesystem::path(path).parent_path().string());
  return errno == ENOENT ? "" : "cannot remove " + path + ": " + std::strerror(errno);
}

}  // namespace braid
