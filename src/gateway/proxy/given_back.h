#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/time.h"
#include "tunnel/api/streams.h"

namespace braid {

/// What a SYN begins. A client that repeats its SYN keeps the sequence number. One that begins
/// again, with the same ends, takes another.
struct Beginning {
  StreamEnds ends;
  uint32_t sequence = 0;
};

/// The SYNs that were given back to the host's listener (StreamHost::giveBack()). Tells which of
/// those that come out of the device later are copies of them.
class GivenBack {
 public:
  /// A copy that comes this soon after the SYN was given back is an echo: the host has routed that
  /// one to the device instead of the listener. Clients repeat theirs after a second (RFC 6298
  /// section 2).
  static constexpr Duration kEcho = 200ms;
  /// How long a SYN is known. As long as Linux takes a SYN for a late one at the ports of a
  /// connection that has ended (TIME_WAIT).
  static constexpr Duration kKnown = 60s;
  /// Most SYNs that are known at once; then the oldest is forgotten. Chosen: about 1 MB.
  static constexpr size_t kMost = 4096;

  enum class Copy : uint8_t {
    kNone,      ///< it begins a connection
    kUseless,   ///< nobody needs it: an echo, or late, because its connection is open or has ended
    kRepeated,  ///< the client has had no answer yet
    /// As kRepeated. The host has routed what was given back to the device, and would do it again.
    kAstray,
  };
  /// A SYN has come out of the device: what it is.
  Copy look(const Beginning& of, Time now);
  /// A SYN is given back now.
  void add(const Beginning& of, Time now);
  /// The listener has accepted a connection. Does nothing when its SYN is unknown.
  void join(const StreamEnds& ends);
  /// SYNs that are known.
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint32_t sequence = 0;
    Time at{};              ///< when it was given back last
    bool isEchoed = false;  ///< the host has routed it to the device
    bool isJoined = false;  ///< the listener has accepted its connection
  };
  std::map<StreamEnds, Entry> entries_;
  std::deque<std::pair<Time, StreamEnds>> order_;  ///< as given back; oldest first
};

}  // namespace braid
