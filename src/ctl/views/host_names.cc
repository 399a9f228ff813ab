#include "ctl/views/host_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "host/system.h"

namespace braid {

namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separators,
                                    bool keepEmpty = false) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find_first_of(separators);
    if (const std::string_view part = text.substr(0, end); keepEmpty || !part.empty())
      out.push_back(part);
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

void forEachLine(std::string_view text, const std::function<void(std::string_view)>& take) {
  for (std::string_view line : split(text, "\n")) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line);
  }
}

// A host chooses the name in its lease. It must neither control a terminal nor look like an
// address; it is shown as text.
std::optional<std::string> checked(std::string_view name) {
  const auto isGood = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_');
  };
  const auto isLetter = [](unsigned char c) { return c < 0x80 && std::isalpha(c) != 0; };
  if (name.empty() || name == "localhost" || !std::ranges::all_of(name, isGood) ||
      !std::ranges::any_of(name, isLetter))
    return std::nullopt;
  return std::string(name.substr(0, HostNames::kLongest));
}

UniqueFd openFile(const std::string& path, struct stat& info) {
  // Reading must not wait for the writer of a pipe.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file && (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))) file = UniqueFd();
  return file;
}

// The files of a source, sorted.
std::vector<std::string> filesOf(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return {path};
  std::vector<std::string> out;
  for (std::filesystem::directory_iterator at(path, failed), end; !failed && at != end;
       at.increment(failed))
    out.push_back(at->path());
  std::ranges::sort(out);
  out.resize(std::min(out.size(), HostNames::kMostFiles));
  return out;
}

// Size and time of each file that can be read.
std::string stampOf(const std::vector<HostNames::Source>& sources) {
  std::string out;
  for (const HostNames::Source& source : sources) {
    for (const std::string& path : filesOf(source.path)) {
      struct stat info {};
      if (::stat(path.c_str(), &info) != 0) continue;
      out += path + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) +
             "." + std::to_string(info.st_mtim.tv_nsec) + "\n";
    }
  }
  return out;
}

}  // namespace

std::vector<HostNames::Source> HostNames::known() {
  std::vector<Source> out{{Format::kHosts, "/etc/hosts"},
                          {Format::kDnsmasq, "/var/lib/misc/dnsmasq.leases"},
                          {Format::kDnsmasq, "/var/lib/dnsmasq/dnsmasq.leases"},
                          {Format::kDhcpd, "/var/lib/dhcp/dhcpd.leases"},
                          {Format::kDhcpd, "/var/lib/dhcp/dhcpd6.leases"},
                          {Format::kKea, "/var/lib/kea/kea-leases4.csv"},
                          {Format::kKea, "/var/lib/kea/kea-leases6.csv"}};
  // Elsewhere every user may write to /tmp.
  if (::access("/etc/openwrt_release", F_OK) == 0) {
    out.push_back({Format::kDnsmasq, "/tmp/dhcp.leases"});
    out.push_back({Format::kHosts, "/tmp/hosts"});
  }
  return out;
}

void HostNames::refresh() {
  std::string now = stampOf(sources_);
  if (now == seen_) return;
  seen_ = std::move(now);
  names_.clear();
  for (const Source& source : sources_)
    for (const std::string& path : filesOf(source.path)) read(source.format, path);
}

void HostNames::read(Format format, const std::string& path) {
  struct stat info {};
  const UniqueFd file = openFile(path, info);
  if (!file) return;
  std::string text(std::min<size_t>(static_cast<size_t>(info.st_size), kMostBytes), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  switch (format) {
    case Format::kHosts:
      return readHosts(text);
    case Format::kDnsmasq:
      return readDnsmasq(text);
    case Format::kDhcpd:
      return readDhcpd(text);
    case Format::kKea:
      return readKea(text);
  }
}

void HostNames::add(std::string_view address, std::string_view name) {
  const std::optional<Address> parsed = Address::parse(address);
  const std::optional<std::string> good = checked(name);
  if (parsed && good && names_.size() < kMostNames) names_.emplace(parsed->toString(), *good);
}

// "192.168.1.5 printer printer.lan  # comment"
void HostNames::readHosts(std::string_view text) {
  forEachLine(text, [&](std::string_view line) {
    const auto words = split(line.substr(0, line.find('#')), " \t");
    if (words.size() >= 2) add(words[0], words[1]);
  });
}

// "EXPIRY MAC ADDRESS NAME CLIENT-ID"; NAME is "*" when the host gave none.
void HostNames::readDnsmasq(std::string_view text) {
  forEachLine(text, [&](std::string_view line) {
    const auto words = split(line, " \t");
    if (words.size() >= 4) add(words[2], words[3]);
  });
}

// "lease ADDRESS { ... client-hostname "NAME"; ... }", for IPv6 "iaaddr ADDRESS {". The file is a
// journal: of an address, the last entry counts.
void HostNames::readDhcpd(std::string_view text) {
  std::string_view address;
  std::unordered_map<std::string, std::string_view> last;
  forEachLine(text, [&](std::string_view line) {
    const auto words = split(line, " \t;\"");
    if (words.size() >= 2 && (words[0] == "lease" || words[0] == "iaaddr")) {
      address = words[1];
      if (last.size() < kMostNames || last.contains(std::string(address)))
        last[std::string(address)] = "";
    } else if (words.size() >= 2 && words[0] == "client-hostname") {
      if (auto known = last.find(std::string(address)); known != last.end())
        known->second = words[1];
    }
  });
  for (const auto& [lease, name] : last) add(lease, name);
}

// Lines of comma-separated values below a line of their titles. The last line of an address counts.
void HostNames::readKea(std::string_view text) {
  std::optional<size_t> address, name;
  std::unordered_map<std::string, std::string_view> last;
  forEachLine(text, [&](std::string_view line) {
    const auto cells = split(line, ",", true);
    if (!address) {
      for (size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] == "address") address = i;
        if (cells[i] == "hostname") name = i;
      }
      return;
    }
    if (!name || cells.size() <= std::max(*address, *name)) return;
    if (std::string key(cells[*address]); last.size() < kMostNames || last.contains(key))
      last[std::move(key)] = cells[*name];
  });
  for (const auto& [lease, given] : last) add(lease, given);
}

std::string HostNames::of(const Address& address) const {
  auto known = names_.find(address.toString());
  return known == names_.end() ? "" : known->second;
}

std::string HostNames::inFlow(std::string_view flow) const {
  std::string out;
  for (std::string_view word : split(flow, " ", true)) {
    std::string shown(word);
    if (const std::optional<Address> address = Address::parse(word)) {
      if (std::string name = of(*address); !name.empty()) shown = std::move(name);
    } else if (const std::optional<Endpoint> end = Endpoint::parse(word)) {
      if (const std::string name = of(end->address); !name.empty())
        shown = name + ":" + std::to_string(end->port);
    }
    out += (out.empty() ? "" : " ") + shown;
  }
  return out;
}

}  // namespace braid
