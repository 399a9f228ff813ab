#pragma once

#include <ev.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "base/time.h"
#include "host/clock.h"
#include "host/unique_fd.h"

namespace braid {

/// CLOCK_MONOTONIC as core time. That clock stands still while the host is suspended, so that timeouts do not
/// all fire on wake-up.
Time monotonicNow();

class MonotonicClock final : public Clock {
 public:
  Time now() const override { return monotonicNow(); }
};

/// One libev loop; runs in the thread that calls run(). Watchers must not outlive it.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs until stop(). Throws what a callback threw.
  void run();
  /// Ends run(); what else is due is not called any more.
  void stop();
  /// One iteration; `wait`: blocks until something happens.
  void runOnce(bool wait);
  struct ev_loop* raw() {
    return loop_;
  }

  /// Makes a call for a watcher of this loop. libev is written in C, through which no exception may pass: it is kept,
  /// and stops the loop.
  template <typename F>
  static void call(struct ev_loop* raw, F&& callback) {
    auto* self = static_cast<Loop*>(ev_userdata(raw));
    if (!self) return callback();  // a loop of somebody else, who answers for what is thrown
    if (self->stopped_) return;    // what is left is fit for being destroyed, not for more work
    try {
      callback();
    } catch (...) {
      self->thrown_ = std::current_exception();
      self->stop();
    }
  }

 private:
  void runWith(int flags);
  struct ev_loop* loop_;
  bool stopped_ = false;
  std::exception_ptr thrown_;
};

/// Calls back while a file descriptor is readable (and, on demand, writable). A callback must not destroy its
/// own watcher. Where the kernel refuses to watch (no memory), it is asked again.
class IoWatcher {
 public:
  using Callback = std::function<void()>;
  /// The descriptor is not owned and must stay open.
  IoWatcher(Loop& loop, int fd, Callback onReadable, Callback onWritable = {});
  ~IoWatcher();
  IoWatcher(const IoWatcher&) = delete;
  IoWatcher& operator=(const IoWatcher&) = delete;
  /// Whether to watch for room to write; off at first.
  void wantWrite(bool on);
  /// Whether to watch for something to read; on at first.
  void wantRead(bool on);

 private:
  void want(int bit, bool on);
  void onEvents(int events);
  Loop& loop_;
  ev_io io_;
  ev_timer again_;
  int events_ = EV_READ;
  Callback onReadable_, onWritable_;
};

/// Calls back at or after an absolute time, to the timer resolution of the kernel (libev's own timers round
/// to milliseconds with epoll).
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> onTime);
  /// kNever disarms. Costs a system call only when the kernel would wake too late: a deadline that is put off, as most
  /// are, leaves the earlier wake-up, which then sees that it is not yet time.
  void arm(Time deadline);
  Time deadline() const { return deadline_; }

 private:
  void onReadable();
  void wakeAt(Time at);
  UniqueFd fd_;
  Time deadline_ = kNever;
  Time wakeUp_ = kNever;  ///< of the kernel; not after deadline_, unless the kernel refused
  std::function<void()> onTime_;
  IoWatcher watcher_;
};

/// Calls back after a signal, inside the loop. The signal is blocked from then on, for the caller's thread and those that
/// it starts later. Throws SystemError.
class SignalWatcher {
 public:
  SignalWatcher(Loop& loop, int signal, std::function<void()> onSignal);

 private:
  UniqueFd fd_;
  std::function<void()> onSignal_;
  IoWatcher watcher_;
};

/// Calls back once per iteration, just before the loop waits; keepAwake() makes the next wait return at once.
class PrepareHook {
 public:
  PrepareHook(Loop& loop, std::function<void()> beforeWait);
  ~PrepareHook();
  PrepareHook(const PrepareHook&) = delete;
  PrepareHook& operator=(const PrepareHook&) = delete;
  void keepAwake(bool on);

 private:
  Loop& loop_;
  ev_prepare prepare_;
  ev_idle idle_;
  std::function<void()> beforeWait_;
};

}  // namespace braid
