#pragma once

#include <set>

#include "tunnel/subflow/route.h"

namespace braid {

/// Gives out names for sockets: unique among those in use, and a name that was given back comes again only
/// after all others, so that late news about a closed socket never meets its successor. 0 is never given.
class SocketIds {
 public:
  /// A free name. At most 65535 are in use at a time, far more than a process has file descriptors.
  SocketId take() {
    do ++last_;
    while (last_ == 0 || used_.contains(last_));
    used_.insert(last_);
    return last_;
  }
  void release(SocketId id) { used_.erase(id); }

 private:
  SocketId last_ = 0;
  std::set<SocketId> used_;
};

}  // namespace braid
