#pragma once

#include <memory>

#include "host/host.h"
#include "host/linux/loop.h"

namespace braid {

/// Resolves names by getaddrinfo() in a thread of its own.
class SystemResolver final : public Resolver {
 public:
  /// `onResult` is called on the loop. The thread starts with the first request.
  SystemResolver(Loop& loop, OnResult onResult);
  /// Does not wait for a lookup in progress.
  ~SystemResolver() override;
  SystemResolver(const SystemResolver&) = delete;
  SystemResolver& operator=(const SystemResolver&) = delete;

  void request(const HostPort& name) override;

 private:
  struct Shared;
  void collect();
  std::shared_ptr<Shared> shared_;
  bool started_ = false;
  OnResult onResult_;
  std::unique_ptr<IoWatcher> watcher_;
};

}  // namespace braid
