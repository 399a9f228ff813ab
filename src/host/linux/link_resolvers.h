#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/host.h"

namespace braid {

/// The DNS servers that this host knows of an interface. They are read from the files of
/// systemd-resolved, systemd-networkd, resolvconf, dhcpcd and dhclient, the first of these that
/// names any. Without any, the servers of the whole host are taken. NetworkManager has no such
/// file: it is asked by others (network_manager.h), and comes behind systemd's programs.
class LinkResolverFiles {
 public:
  /// `root`: the folder that the files are looked up in; "" is this host's.
  explicit LinkResolverFiles(std::string root = {}) : root_(std::move(root)) {}

  /// Whether of() needs to know what NetworkManager says of the interface: it has that interface,
  /// and what comes before it names no servers.
  bool needsManager(const LookupWay& way) const;
  /// The servers for lookups on this way, except for those that the tunnel leads to. Without
  /// servers nobody can be asked. `managers`: those of the interface by NetworkManager.
  LinkResolvers of(const LookupWay& way, const std::vector<Address>& managers = {}) const;
  /// The servers of the whole host (resolv.conf). A program on a loopback address stands for the
  /// servers that it asks, where these are known.
  LinkResolvers ofHost() const;

 private:
  LinkResolvers ofSystemd(const std::string& index) const;
  LinkResolvers ofLink(const LookupWay& way, const std::vector<Address>& managers) const;
  std::string read(const std::string& path) const;

  std::string root_;
};

/// The addresses of `nameserver` lines (resolv.conf(5)); scopes ("%eth0") are left out.
std::vector<Address> nameserversOf(std::string_view text);
/// The addresses behind `KEY=`, separated by spaces, as systemd writes them: with or without port,
/// scope or server name ("1.1.1.1:53%2#dns.example").
std::vector<Address> systemdServers(std::string_view text, std::string_view key);
/// The servers of the last lease of this interface in a file of dhclient (dhclient.leases(5)).
std::vector<Address> dhclientServers(std::string_view text, std::string_view interface);

/// 127.0.0.0/8 and ::1.
bool isLoopback(const Address& address);

}  // namespace braid
