#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "host/translator.h"
#include "inet/endpoint.h"
#include "inet/prefix.h"

namespace braid {

/// A TCP connection that ends at this gateway. Nothing blocks. When the object or the whole process ends before
/// close(), the other end gets a reset: a connection that was cut off never looks like one that has ended.
class StreamSocket {
 public:
  /// What a read or a write came to.
  struct Moved {
    enum class Why : uint8_t {
      kDone,     ///< there may be more to do at once
      kBlocked,  ///< the host says when to try again (StreamObserver::onReady)
      kEnd,      ///< read only: the other end has sent its last byte
      kFailed,   ///< `error` says why: the connection is gone
    };
    size_t bytes = 0;
    Why why = Why::kBlocked;
    int error = 0;  ///< errno
  };

  virtual ~StreamSocket() = default;

  /// 0: connected; EINPROGRESS: not yet; else why it is not.
  virtual int connectError() = 0;
  /// Why the connection is gone (errno), after a `failed` of onReady(); 0: it is not.
  virtual int takeError() = 0;
  virtual Moved read(std::span<const ByteSpan> into) = 0;
  virtual Moved write(std::span<const ByteView> from) = 0;
  /// This side has sent its last byte (FIN).
  virtual void shutdownWrite() = 0;
  /// Ends the connection in order: what was written still arrives, and then FIN.
  virtual void close() = 0;
};

/// What a host tells of its TCP connections. No call comes from inside of one to the host.
class StreamObserver {
 public:
  struct Ready {
    bool readable = false, writable = false;
    bool failed = false;  ///< ask StreamSocket::takeError()
  };
  virtual ~StreamObserver() = default;
  /// Connections wait to be accepted: told until they are.
  virtual void onAcceptable() = 0;
  /// Told once for each change: who was told `readable` reads until kBlocked, and likewise for `writable`.
  virtual void onReady(uint64_t tag, Ready ready) = 0;
};

/// Which connections of others a rule names.
struct StreamRule {
  std::optional<Prefix> network{};  ///< of the destination; none: any, of both families
  uint16_t firstPort = 1, lastPort = 65535;
  bool operator==(const StreamRule&) const = default;
};

/// Connections from one host to another.
struct StreamPair {
  Address source, destination;  ///< of one family
  bool operator==(const StreamPair&) const = default;
};

/// Which new TCP connections through this host end at it.
struct Interception {
  std::string device;                ///< only what is routed into this interface, and did not come from it
  std::vector<std::string> outside;  ///< nor from these interfaces, which strangers are behind
  uint32_t mark = 0;  ///< what the packets of such connections are marked with, for a policy rule
  std::vector<AddressRange> destinations;  ///< ordered, apart from each other
  std::vector<StreamRule> match;           ///< any of them, and
  std::vector<StreamRule> exclude;         ///< none of them
  std::vector<StreamPair> avoid;           ///< nor between these
  bool operator==(const Interception&) const = default;
};

/// TCP connections of others that end at this gateway, and those that it opens in their place.
class StreamHost {
 public:
  struct Accepted {
    std::unique_ptr<StreamSocket> socket;
    Endpoint source, destination;
  };

  virtual ~StreamHost() = default;

  /// New connections that `what` names come to this host's listeners from now on; without `takeNew` only the packets of
  /// those that are there already. Throws SystemError: then all is as it was.
  virtual void intercept(const Interception& what, bool takeNew) = 0;
  /// The interception ends; connections that are open get no packets any more.
  virtual void stopIntercepting() = 0;

  /// The next connection that waits; none: `error` is EAGAIN, EMFILE when one was reset because there are no descriptors,
  /// or why the host cannot give it.
  /// `tag`: what onReady() says of it.
  virtual std::optional<Accepted> accept(uint64_t tag, int& error) = 0;
  /// Whether onAcceptable() is wanted; it is at first.
  virtual void wantAccept(bool on) = 0;
  /// Gives the socket another tag.
  virtual void retag(StreamSocket& socket, uint64_t tag) = 0;
  /// Opens a connection, from this source address and port when there is one. nullptr: `error` says why not.
  virtual std::unique_ptr<StreamSocket> connect(const std::optional<Endpoint>& source,
                                                const Endpoint& destination, uint64_t tag, int& error) = 0;
  /// Connections that this process may have open at once.
  virtual size_t most() const = 0;
};

}  // namespace braid
