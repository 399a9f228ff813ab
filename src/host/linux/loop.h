#pragma once

#include <ev.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "base/time.h"
#include "host/host.h"
#include "host/system.h"

namespace braid {

/// CLOCK_MONOTONIC as core time. That clock does not advance while the machine is suspended, so
/// timeouts do not all fire on wake-up.
Time monotonicNow();

class MonotonicClock final : public Clock {
 public:
  Time now() const override { return monotonicNow(); }
};

/// A libev event loop. It runs in the thread that calls run(). Watchers must not outlive it.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs until stop(). Rethrows an exception of a callback.
  void run();
  /// Ends run(). Other callbacks that are due are not called any more.
  void stop();
  /// Runs one iteration. `wait`: blocks until something happens.
  void runOnce(bool wait);
  struct ev_loop* raw() {
    return loop_;
  }

  /// Calls `callback` for a watcher of this loop. Exceptions must not propagate through libev,
  /// which is written in C. So an exception is stored and stops the loop; run() rethrows it.
  template <typename F>
  static void call(struct ev_loop* raw, F&& callback) {
    auto* self = static_cast<Loop*>(ev_userdata(raw));
    if (!self) return callback();  // not a Loop of ours: its owner handles exceptions
    if (self->stopped_) return;    // after stop() objects may only be destroyed
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

/// Calls back while a file descriptor is readable (and, on demand, writable). A callback must not
/// destroy its own watcher. If the kernel refuses to watch the descriptor (no memory), the request
/// is repeated.
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

 private:
  void onEvents(int events);
  Loop& loop_;
  ev_io io_;
  ev_timer again_;
  int events_ = EV_READ;
  Callback onReadable_, onWritable_;
};

/// Calls back at or after an absolute time, with the kernel's timer resolution. (libev's own timers
/// round to milliseconds with epoll.)
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> onTime);
  /// Sets the deadline; kNever disarms. Needs a system call only when the kernel's present wake-up
  /// is too late. A deadline that is postponed, as most are, leaves the earlier wake-up in place;
  /// when that comes, it is set again.
  void arm(Time deadline);
  Time deadline() const { return deadline_; }

 private:
  void onReadable();
  void wakeAt(Time at);
  UniqueFd fd_;
  Time deadline_ = kNever;
  Time wakeUp_ = kNever;  ///< the kernel's wake-up; not after deadline_, unless the kernel refused
  std::function<void()> onTime_;
  IoWatcher watcher_;
};

/// Calls back once, some milliseconds after a time at the earliest. It needs no descriptor, so it
/// can always be made.
class CoarseTimer {
 public:
  CoarseTimer(Loop& loop, std::function<void()> onTime);
  ~CoarseTimer();
  CoarseTimer(const CoarseTimer&) = delete;
  CoarseTimer& operator=(const CoarseTimer&) = delete;
  /// Calls back this long from now, and not at the time that was set before.
  void start(Duration after);
  void stop();

 private:
  Loop& loop_;
  std::function<void()> onTime_;
  ev_timer timer_;
};

/// Calls back inside the loop after a signal. Blocks the signal from then on in the calling thread
/// and in threads that it starts later. Throws SystemError.
class SignalWatcher {
 public:
  SignalWatcher(Loop& loop, int signal, std::function<void()> onSignal);

 private:
  UniqueFd fd_;
  std::function<void()> onSignal_;
  IoWatcher watcher_;
};

/// Calls back once per iteration, just before the loop waits; keepAwake() makes the next wait
/// return at once.
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
