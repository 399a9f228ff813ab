#include "host/linux/link_resolvers.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <utility>

namespace braid {

namespace {

// Chosen: a file of leases grows with each renewal. Only its end is of use.
constexpr std::streamoff kMostBytes = 256 << 10;
// glibc asks three servers at most; more would only make failing slower.
constexpr size_t kMostServers = 6;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

// Calls f with each part of the text between separators, trimmed, unless it is empty.
template <typename F>
void forEachPart(std::string_view text, std::string_view separators, F&& f) {
  while (!text.empty()) {
    size_t end = text.find_first_of(separators);
    std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) f(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

// "192.0.2.1", "fe80::1%eth0", "192.0.2.1:53", "[2001:db8::1]:53", any of them with "#name".
std::optional<Address> serverOf(std::string_view text) {
  text = text.substr(0, text.find_first_of("#%"));
  if (text.starts_with("[")) {
    size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    return Address::parse(text.substr(1, end - 1));
  }
  if (std::count(text.begin(), text.end(), ':') == 1) text = text.substr(0, text.find(':'));
  return Address::parse(text);
}

void addServer(std::vector<Address>& to, std::string_view text) {
  std::optional<Address> address = serverOf(text);
  if (!address || to.size() >= kMostServers) return;
  if (std::all_of(address->bytes.begin(), address->bytes.end(), [](uint8_t b) { return b == 0; }))
    return;
  if (std::find(to.begin(), to.end(), *address) == to.end()) to.push_back(*address);
}

// The words of a lease's line: "option domain-name-servers 192.0.2.1,192.0.2.2;".
bool isServersOption(std::string_view line, std::string_view& servers) {
  for (std::string_view name : {"option domain-name-servers ", "option dhcp6.name-servers "}) {
    if (!line.starts_with(name)) continue;
    servers = line.substr(name.size());
    return true;
  }
  return false;
}

bool isOfInterface(const std::string& file, const std::string& interface) {
  return file == interface || file.starts_with(interface + ".");
}

}  // namespace

bool isLoopback(const Address& address) {
  if (address.isV4()) return address.bytes[0] == 127;
  return address == *Address::parse("::1");
}

std::vector<Address> nameserversOf(std::string_view text) {
  std::vector<Address> out;
  forEachPart(text, "\n", [&](std::string_view line) {
    constexpr std::string_view kKey = "nameserver";
    if (!line.starts_with(kKey)) return;
    std::string_view rest = line.substr(kKey.size());
    if (rest.empty() || !std::isspace(static_cast<unsigned char>(rest.front()))) return;
    addServer(out, trimmed(rest));
  });
  return out;
}

std::vector<Address> systemdServers(std::string_view text, std::string_view key) {
  std::vector<Address> out;
  forEachPart(text, "\n", [&](std::string_view line) {
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != '=') return;
    forEachPart(line.substr(key.size() + 1), " ", [&](std::string_view s) { addServer(out, s); });
  });
  return out;
}

std::vector<Address> dhclientServers(std::string_view text, std::string_view interface) {
  std::vector<Address> last, lease;
  bool ours = false;
  forEachPart(text, "\n", [&](std::string_view line) {
    std::string_view servers;
    if (line.starts_with("lease") && line.ends_with("{")) {
      lease.clear();
      ours = false;
    } else if (line == "interface \"" + std::string(interface) + "\";") {
      ours = true;
    } else if (isServersOption(line, servers)) {
      forEachPart(servers, ",; ", [&](std::string_view s) { addServer(lease, s); });
    } else if (line == "}" && ours && !lease.empty()) {
      last = lease;
    }
  });
  return last;
}

std::string LinkResolverFiles::read(const std::string& path) const {
  std::ifstream in(root_ + path, std::ios::binary);
  if (!in) return {};
  in.seekg(0, std::ios::end);
  std::streamoff size = in.tellg();
  in.clear();
  in.seekg(size > kMostBytes ? size - kMostBytes : 0);
  std::string out(static_cast<size_t>(kMostBytes), '\0');
  in.read(out.data(), kMostBytes);
  out.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return out;
}

LinkResolvers LinkResolverFiles::ofSystemd(const std::string& index) const {
  // What others have told systemd-resolved of the interface: resolvectl, NetworkManager.
  LinkResolvers out;
  out.servers = systemdServers(read("/run/systemd/resolve/netif/" + index), "SERVERS");
  out.source = "systemd-resolved";
  if (!out.servers.empty()) return out;
  out.servers = systemdServers(read("/run/systemd/netif/links/" + index), "DNS");
  out.source = "systemd-networkd";
  return out;
}

bool LinkResolverFiles::needsManager(const LookupWay& way) const {
  std::string index = std::to_string(way.link);
  std::error_code error;
  return way.resolvers.empty() && ofSystemd(index).servers.empty() &&
         std::filesystem::exists(root_ + "/run/NetworkManager/devices/" + index, error);
}

LinkResolvers LinkResolverFiles::ofLink(const LookupWay& way,
                                        const std::vector<Address>& managers) const {
  LinkResolvers out = ofSystemd(std::to_string(way.link));
  if (!out.servers.empty()) return out;
  if (!managers.empty()) return {managers, "NetworkManager", false};
  // resolvconf, openresolv, and dhcpcd without either. A file's name begins with the interface's,
  // and each program on the interface (IPv4, IPv6) has a file of its own.
  for (const char* folder : {"/run/resolvconf/interface", "/run/resolvconf/interfaces",
                             "/run/resolvconf/keys", "/run/dhcpcd/hook-state/resolv.conf"}) {
    std::error_code error;
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + folder, error)) {
      std::string file = entry.path().filename().string();
      if (isOfInterface(file, way.interface)) files.push_back(file);
    }
    std::sort(files.begin(), files.end());
    std::string text;
    for (const std::string& file : files) text += read(std::string(folder) + "/" + file) + "\n";
    out.servers = nameserversOf(text);
    out.source = std::string(folder).starts_with("/run/dhcpcd") ? "dhcpcd" : "resolvconf";
    if (!out.servers.empty()) return out;
  }
  out.source = "dhclient";
  for (const std::string& file : {"/var/lib/dhcp/dhclient." + way.interface + ".leases",
                                  std::string("/var/lib/dhcp/dhclient.leases")}) {
    out.servers = dhclientServers(read(file), way.interface);
    if (!out.servers.empty()) return out;
  }
  return {};
}

LinkResolvers LinkResolverFiles::ofHost() const {
  LinkResolvers local;
  for (const char* file : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf",
                           "/run/NetworkManager/no-stub-resolv.conf",
                           "/tmp/resolv.conf.d/resolv.conf.auto", "/run/dnsmasq/resolv.conf"}) {
    LinkResolvers found{nameserversOf(read(file)), file, false};
    std::vector<Address> own;
    std::erase_if(found.servers, [&](const Address& a) {
      if (isLoopback(a)) own.push_back(a);
      return isLoopback(a);
    });
    if (!found.servers.empty()) return found;
    if (local.servers.empty() && !own.empty()) local = {std::move(own), file, true};
  }
  return local;
}

LinkResolvers LinkResolverFiles::of(const LookupWay& way,
                                    const std::vector<Address>& managers) const {
  auto isInside = [&](const Address& a) {
    return std::find(way.inside.begin(), way.inside.end(), a) != way.inside.end();
  };
  if (!way.resolvers.empty()) return {way.resolvers, "configuration", false};
  LinkResolvers out = ofLink(way, managers);
  std::erase_if(out.servers, [&](const Address& a) { return isInside(a) || isLoopback(a); });
  if (!out.servers.empty() || way.strict) return out;
  out = ofHost();
  std::erase_if(out.servers, isInside);
  return out;
}

}  // namespace braid
