#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/datagram_socket.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/packet_filter.h"
#include "host/portal_gate.h"
#include "host/stream_host.h"
#include "host/tun_device.h"
#include "inet/addresses.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Tells the present time on the core's time line, which is monotonic.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

/// A host name and port, such as "vpn.example.net:4433". The name is kept as text, because its
/// addresses may change.
struct HostPort {
  std::string host;
  uint16_t port = 0;
  auto operator<=>(const HostPort&) const = default;
};

/// An uplink over which names are looked up.
struct LookupWay {
  std::string uplink;              ///< its name
  std::string interface;           ///< the lookup's sockets are bound to it; empty: to none
  int link = 0;                    ///< index of the interface
  Address v4, v6;                  ///< the lookup's local addresses; unset: none of this family
  std::vector<Address> resolvers;  ///< to ask; empty: those that the host knows of the interface
  std::vector<Address> inside;     ///< never asked: they are reached through the tunnel
  uint32_t mark = 0;  ///< packet mark of the lookup's sockets; 0: as those of any program
  /// Only `resolvers`, or those that the host knows of the interface, are asked: neither the hosts
  /// file nor the servers of the whole host.
  bool strict = false;
  bool operator==(const LookupWay&) const = default;
};

/// DNS servers that belong to an interface.
struct LinkResolvers {
  std::vector<Address> servers;
  std::string source;  ///< who says so: "configuration", "systemd-resolved"...
  /// Programs of this host, on loopback addresses: they are asked there, and how they ask in turn
  /// is their own matter.
  bool local = false;
  bool operator==(const LinkResolvers&) const = default;
};

/// What a name is over one uplink.
struct LookupResult {
  std::string uplink;
  HostPort name;
  std::vector<Endpoint> found;  ///< sorted; empty: it cannot be resolved there now
  std::string problem;          ///< why not
  bool reached = true;          ///< a server answered, whatever it said
  LinkResolvers asked;
};

/// Resolves host names over single uplinks, past the tunnel. An answer may take many seconds.
class Resolver {
 public:
  using OnResult = std::function<void(const LookupResult&)>;

  virtual ~Resolver() = default;
  /// Starts the lookup of a name over an uplink. One that is in progress there already goes on,
  /// unless it took another way.
  virtual void request(const LookupWay& way, const HostPort& name) = 0;
};

/// What a web server answered over an uplink.
struct WebAnswer {
  LookupWay way;         ///< the request's
  Address server;        ///< the same
  unsigned status = 0;   ///< of HTTP; 0: there was no answer
  std::string location;  ///< where it redirects to; empty: nowhere
  bool operator==(const WebAnswer&) const = default;
};

/// Asks web servers for their first page, by plain HTTP over single uplinks, past the tunnel.
class WebProbe {
 public:
  using OnAnswer = std::function<void(const WebAnswer&)>;

  virtual ~WebProbe() = default;
  /// Asks the server at port 80 of an address. A request to it that is in progress over that uplink
  /// is given up. The answer may take some seconds. Throws SystemError.
  virtual void request(const LookupWay& way, const Address& server) = 0;
};

/// The most gateways of one host (network namespace) that have marks and routing tables of their
/// own.
inline constexpr unsigned kMostGateways = 32;

/// A gateway's interface to its operating system: linux/ has the real implementation, fake/ the one
/// for tests. Objects opened here must not outlive the host. Callbacks only say that there is
/// something to do. They are called between two event loop turns of the gateway, never from within
/// a call to these objects.
class Host {
 public:
  using Callback = std::function<void()>;

  virtual ~Host() = default;

  virtual const Clock& clock() const = 0;
  /// Why this process may be a copy of one that goes on elsewhere, or goes on from an earlier state
  /// of its own, as far as that was seen since the last call: "this machine was suspended for 5 s".
  /// nullopt: nothing was seen.
  virtual std::optional<std::string> takeBreak() = 0;
  /// A new secret random key at each call. Throws SystemError.
  virtual RandomKey randomKey() = 0;
  /// Throws SystemError.
  virtual std::unique_ptr<TunDevice> openDevice(const DeviceOptions& options,
                                                Callback onReadable) = 0;
  /// Throws SystemError.
  virtual std::unique_ptr<DatagramSocket> openSocket(SocketId id, const SocketOptions& options,
                                                     SocketCallbacks callbacks) = 0;
  /// Opens the host side of TCP connections that end at this gateway. `device` names the gateway's
  /// interface. Throws SystemError.
  virtual std::unique_ptr<StreamHost> openStreams(const std::string& device,
                                                  StreamObserver& observer) = 0;
  /// Opens address translation (NAT) for the gateway with this interface. Throws SystemError.
  virtual std::unique_ptr<Translator> openTranslator(const std::string& device) = 0;
  /// Opens the packet filter for the gateway with this interface. Throws SystemError.
  virtual std::unique_ptr<PacketFilter> openFilter(const std::string& device) = 0;
  /// A number below kMostGateways that no other gateway of the host has, which tells apart the
  /// marks and routing tables of several gateways. The same at each call.
  virtual unsigned slot() = 0;
  virtual HostNetwork& network() = 0;
  /// Must be called only once. Throws SystemError.
  virtual NetworkMonitor& watchNetwork(Callback onChange) = 0;
  /// Opens the ways to captive portals for the gateway with this interface. Throws SystemError.
  virtual std::unique_ptr<PortalGate> openPortalGate(const std::string& device) = 0;
  virtual std::unique_ptr<Resolver> openResolver(Resolver::OnResult onResult) = 0;
  virtual std::unique_ptr<WebProbe> openWebProbe(WebProbe::OnAnswer onAnswer) = 0;
};

}  // namespace braid
