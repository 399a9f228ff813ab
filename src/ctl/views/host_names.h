#pragma once

// Names of hosts by address, for people: as the leases of this host's DHCP server and /etc/hosts
// have them. No name is asked for over the network.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inet/addresses.h"

namespace braid {

class HostNames {
 public:
  enum class Format : uint8_t { kHosts, kDnsmasq, kDhcpd, kKea };
  struct Source {
    Format format;
    std::string path;  ///< a file, or a folder of such files
  };
  /// What is read of a file, the number of files of a folder and of names, and the length of a name
  /// in bytes. What is more is left out.
  static constexpr size_t kMostBytes = 1 << 20, kMostFiles = 16, kMostNames = 4096, kLongest = 40;

  /// /etc/hosts, and where dnsmasq, ISC dhcpd and Kea keep their leases; on OpenWrt also the files
  /// in /tmp.
  static std::vector<Source> known();

  /// Knows nobody.
  HostNames() = default;
  /// Of several sources that name an address, the first counts.
  explicit HostNames(std::vector<Source> sources) : sources_(std::move(sources)) {}

  /// Reads the sources again if one has changed. What cannot be read is left out.
  void refresh();
  /// Empty: not known. Otherwise letters, digits, dots, dashes and underscores.
  std::string of(const Address& address) const;
  /// The name of a flow with the hosts' names: "tcp laptop:5000 > 192.0.2.1:443". What is not known
  /// stays an address.
  std::string inFlow(std::string_view flow) const;

 private:
  void read(Format format, const std::string& path);
  void add(std::string_view address, std::string_view name);
  void readHosts(std::string_view text);
  void readDnsmasq(std::string_view text);
  void readDhcpd(std::string_view text);
  void readKea(std::string_view text);

  std::vector<Source> sources_;
  std::string seen_;  ///< size and time of each file, as it was read
  std::unordered_map<std::string, std::string> names_;  ///< by the address as text
};

}  // namespace braid
