#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "inet/addresses.h"

namespace braid {

/// All addresses from `first` to `last`, both of one family.
struct AddressRange {
  Address first, last;
  bool operator==(const AddressRange&) const = default;
};

/// A port forwarding: connections to these ports of this host are forwarded to another host.
struct PortForward {
  uint8_t protocol = 0;  ///< ip::kTcp or ip::kUdp
  uint16_t firstPort = 0, lastPort = 0;
  Address to;
  uint16_t toPort = 0;       ///< 0: the original destination port
  std::vector<Prefix> from;  ///< sources that may use it, of the same family as `to`; empty: all
  bool ownSource = false;    ///< the other host sees this host's address instead of the source's
  bool operator==(const PortForward&) const = default;
};

/// How the kernel must translate addresses of packets that pass through this host.
struct Translation {
  std::string device;  ///< the tunnel's interface
  /// Packets that come from the tunnel and leave by another interface get that interface's address
  /// as their source.
  bool masqueradeV4 = false;
  bool masqueradeV6 = false;
  std::vector<AddressRange> sources;  ///< sources to masquerade; in ascending order, not adjacent
  std::vector<PortForward> forwards;  ///< the first that matches is used
  /// Packets of other hosts to `direct` that leave by one of these interfaces get its address as
  /// their source.
  std::vector<std::string> uplinks;
  std::vector<AddressRange> direct;  ///< in ascending order, not adjacent
  /// With `direct`: in the bits of `markMask`, the mark of connections that began through the
  /// tunnel. See Translator::forgetTunnelled().
  uint32_t tunnelledMark = 0, markMask = 0;
  bool isEmpty() const {
    return !masqueradeV4 && !masqueradeV6 && forwards.empty() && direct.empty();
  }
  bool operator==(const Translation&) const = default;
};

/// Translates addresses of packets. Its rules are removed with this object, and also when the
/// process ends in any way.
class Translator {
 public:
  virtual ~Translator() = default;
  /// Replaces the former translation atomically. If it throws SystemError, the former one stays.
  virtual void set(const Translation& what) = 0;
  /// The kernel translates the later packets of a connection as its first one. Makes it take the
  /// next packet of each connection that began through the tunnel for a first one. Throws
  /// SystemError.
  virtual void forgetTunnelled() = 0;
};

/// A TCP connection that ends at this gateway. No call blocks. If the object is destroyed or the
/// process ends before close(), the other end gets a reset, so that a connection that was cut off
/// never looks like one that has ended.
class StreamSocket {
 public:
  /// The outcome of a read or a write.
  struct Moved {
    enum class Why : uint8_t {
      kDone,     ///< bytes were moved; there may be more to do at once
      kBlocked,  ///< nothing to do now; StreamObserver::onReady() tells when to try again
      kEnd,      ///< read only: the other end has sent its last byte
      kFailed,   ///< `error` says why: the connection is gone
    };
    size_t bytes = 0;
    Why why = Why::kBlocked;
    int error = 0;  ///< errno
  };

  virtual ~StreamSocket() = default;

  /// The state of connect(): 0: connected; EINPROGRESS: not yet; else the errno of the failure.
  virtual int connectError() = 0;
  /// Why the connection failed (errno), after onReady() with `failed`; 0: it did not.
  virtual int takeError() = 0;
  virtual Moved read(std::span<const ByteSpan> into) = 0;
  virtual Moved write(std::span<const ByteView> from) = 0;
  /// Ends sending: a FIN follows the last byte.
  virtual void shutdownWrite() = 0;
  /// Closes the connection gracefully: written data is still sent, followed by a FIN.
  virtual void close() = 0;
};

/// Is told about events of the host's TCP connections. Never called from within a call to the host.
class StreamObserver {
 public:
  struct Ready {
    bool readable = false, writable = false;
    bool failed = false;  ///< ask StreamSocket::takeError()
  };
  virtual ~StreamObserver() = default;
  /// Connections wait to be accepted. Called again and again until they are accepted
  /// (level-triggered).
  virtual void onAcceptable() = 0;
  /// The connection with this tag has changed. Called once for each change (edge-triggered): after
  /// `readable` the observer must read until kBlocked, and likewise write after `writable`.
  virtual void onReady(uint64_t tag, Ready ready) = 0;
};

/// A condition on connections of other hosts.
struct StreamRule {
  std::optional<Prefix> network{};  ///< prefix of the destination; none: any, of both families
  uint16_t firstPort = 1, lastPort = 65535;
  bool operator==(const StreamRule&) const = default;
};

/// Connections from one host to another.
struct StreamPair {
  Address source, destination;  ///< of one family
  bool operator==(const StreamPair&) const = default;
};

/// Connections of one address family that come in by one interface.
struct StreamApproach {
  std::string interface;
  uint32_t index = 0;  ///< of the interface
  Address source;      ///< a host behind it
  bool operator==(const StreamApproach&) const = default;
};

/// Connections that the host's packet filter would drop if they were intercepted.
struct StreamBarrier {
  std::string interface;
  bool v6 = false;
  std::string by;  ///< "chain INPUT of table ip filter, by its policy"
  bool operator==(const StreamBarrier&) const = default;
};

/// Which new TCP connections through this host are intercepted, that is, end at it.
struct Interception {
  std::string device;  ///< only connections routed into this interface that did not come from it
  /// Not connections from these interfaces, behind which there are strangers.
  std::vector<std::string> outside;
  /// The value that the bits of `markMask` get in the mark of the packets of such connections; a
  /// policy routing rule matches it.
  uint32_t mark = 0, markMask = UINT32_MAX;
  std::vector<AddressRange> destinations;  ///< in ascending order, not adjacent
  std::vector<AddressRange> sources;       ///< of this form, too; empty: all
  std::vector<StreamRule> match;           ///< at least one must match, and
  std::vector<StreamRule> exclude;         ///< none may match
  std::vector<StreamPair> avoid;           ///< nor connections between these hosts
  std::vector<StreamBarrier> barred;       ///< nor those that would be dropped
  /// New connections that match are not intercepted at once: their packets go on to the device, and
  /// the host remembers which connections these are (StreamHost::wasLetThrough()).
  bool waits = false;
  bool operator==(const Interception&) const = default;
};

/// Intercepts other hosts' TCP connections at this gateway, and opens connections on their behalf.
class StreamHost {
 public:
  struct Accepted {
    std::unique_ptr<StreamSocket> socket;
    Endpoint source, destination;
  };

  virtual ~StreamHost() = default;

  /// From now on, new connections that match `what` are delivered to this host's listeners. Without
  /// `takeNew` only packets of connections already intercepted are. If it throws SystemError,
  /// nothing has changed.
  virtual void intercept(const Interception& what, bool takeNew) = 0;
  /// Which of these the host's packet filter drops certainly when they are intercepted as `what`
  /// says: a filter may let hosts reach no other address of this host than its own. nullopt: the
  /// filter has not changed since the last call, and `again` is false.
  virtual std::optional<std::vector<StreamBarrier>> barriers(
      const Interception& what, const std::vector<StreamApproach>& approaches, bool again) = 0;
  /// Whether giveBack() works here. The first call asks the system for what it takes.
  virtual bool canGiveBack() = 0;
  /// Whether a connection with these ends was let through to the device within the last seconds
  /// only because of Interception::waits.
  virtual bool wasLetThrough(const Endpoint& source, const Endpoint& destination) = 0;
  /// Intercepts a connection that was let through: `syn`, the IP packet that begins it, arrives at
  /// this host's listener as if it had come in now.
  virtual void giveBack(ByteView syn) = 0;
  /// Ends the interception. Open connections receive no more packets.
  virtual void stopIntercepting() = 0;

  /// Accepts the next waiting connection; onReady() will name it by `tag`. Without one, `error` is
  /// EAGAIN when none waits, EMFILE when one was reset because no file descriptor was free, or
  /// another errno of the failure.
  virtual std::optional<Accepted> accept(uint64_t tag, int& error) = 0;
  /// Sets whether onAcceptable() is wanted. Default: yes.
  virtual void wantAccept(bool on) = 0;
  /// Changes the tag of a socket.
  virtual void retag(StreamSocket& socket, uint64_t tag) = 0;
  /// Opens a connection, from the source address and port if given. On failure returns nullptr and
  /// sets `error` (errno).
  virtual std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source,
                                                const Endpoint& destination, uint64_t tag,
                                                int& error) = 0;
  /// The most connections that this process can have open at once.
  virtual size_t most() const = 0;
};

}  // namespace braid
