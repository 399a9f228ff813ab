#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/loop.h"

namespace braid {

/// Turns host names into addresses in a thread of its own, since getaddrinfo() may take many seconds.
class Resolver {
 public:
  /// The addresses of a name, sorted; empty when it cannot be resolved now.
  using OnResult = std::function<void(const HostPort&, const std::vector<Endpoint>&)>;

  /// `onResult` is called on the loop. The thread starts with the first request.
  Resolver(Loop& loop, OnResult onResult);
  /// Does not wait for a lookup under way.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Looks a name up; one that is waiting already is not looked up twice.
  void request(const HostPort& name);

 private:
  struct Shared;
  void collect();
  std::shared_ptr<Shared> shared_;
  bool started_ = false;
  OnResult onResult_;
  std::unique_ptr<IoWatcher> watcher_;
};

}  // namespace braid
