#include "host/linux/loop.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "host/linux/process.h"
#include "host/system.h"

namespace braid {

Time monotonicNow() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Time(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

namespace {

constexpr ev_tstamp kWatchAgain = 0.01;  // seconds until a refused watch is requested again

// By default libev ends the process when one of its system calls fails. This handler lets it retry
// a failed wait, after a pause, so that a permanent failure does not use up a processor.
void onLibevTrouble(const char*) noexcept {
  timespec pause{0, 1'000'000};
  ::nanosleep(&pause, nullptr);
}

// libev ends the process when it gets no memory. So when an allocation fails, the memory reserve is
// released for it.
void* reallocForLibev(void* old, long size) noexcept {
  if (size == 0) {
    std::free(old);
    return nullptr;
  }
  void* got = std::realloc(old, static_cast<size_t>(size));
  if (!got) {
    releaseMemoryReserve();
    got = std::realloc(old, static_cast<size_t>(size));
  }
  return got;
}

struct ev_loop* makeLoop() {
  ev_set_syserr_cb(onLibevTrouble);
  ev_set_allocator(reallocForLibev);
  return ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
}

}  // namespace

Loop::Loop() : loop_(makeLoop()) {
  if (!loop_) throw SystemError(ENOSYS, "cannot make an event loop");
  ev_set_userdata(loop_, this);
}
Loop::~Loop() {
  ev_loop_destroy(loop_);
}
void Loop::run() {
  runWith(0);
}
void Loop::stop() {
  stopped_ = true;
  ev_break(loop_, EVBREAK_ALL);
}
void Loop::runOnce(bool wait) {
  runWith(wait ? EVRUN_ONCE : EVRUN_NOWAIT);
}
void Loop::runWith(int flags) {
  stopped_ = false;
  ev_run(loop_, flags);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

IoWatcher::IoWatcher(Loop& loop, int fd, Callback onReadable, Callback onWritable)
    : loop_(loop), onReadable_(std::move(onReadable)), onWritable_(std::move(onWritable)) {
  auto call = [](struct ev_loop* raw, ev_io* io, int events) {
    Loop::call(raw, [&] { static_cast<IoWatcher*>(io->data)->onEvents(events); });
  };
  auto again = [](struct ev_loop* raw, ev_timer* timer, int) {
    auto* self = static_cast<IoWatcher*>(timer->data);
    if (self->events_) ev_io_start(raw, &self->io_);
  };
  ev_io_init(&io_, call, fd, EV_READ);
  ev_timer_init(&again_, again, kWatchAgain, 0);
  io_.data = again_.data = this;
  ev_io_start(loop_.raw(), &io_);
}

IoWatcher::~IoWatcher() {
  ev_io_stop(loop_.raw(), &io_);
  ev_timer_stop(loop_.raw(), &again_);
}

// EV_ERROR means that epoll_ctl() was refused and libev has stopped the watcher. The other two bits
// are then set as well.
void IoWatcher::onEvents(int events) {
  if (events & EV_ERROR) {
    ev_timer_set(&again_, kWatchAgain, 0);
    ev_timer_start(loop_.raw(), &again_);
    return;
  }
  if ((events & EV_WRITE) && onWritable_) onWritable_();
  if (events & EV_READ) onReadable_();
}

void IoWatcher::wantWrite(bool on) {
  int events = on ? EV_READ | EV_WRITE : EV_READ;
  if (events == events_) return;
  events_ = events;
  ev_io_stop(loop_.raw(), &io_);
  ev_io_set(&io_, io_.fd, events);
  ev_io_start(loop_.raw(), &io_);
}

namespace {

UniqueFd makeTimer() {
  UniqueFd fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd) throw SystemError(errno, std::string("cannot make a timer: ") + std::strerror(errno));
  return fd;
}

}  // namespace

Timer::Timer(Loop& loop, std::function<void()> onTime)
    : fd_(makeTimer()),
      onTime_(std::move(onTime)),
      watcher_(loop, fd_.get(), [this] { onReadable(); }) {}

void Timer::arm(Time deadline) {
  deadline_ = deadline;
  if (deadline < wakeUp_) wakeAt(deadline);
}

// Sets the kernel's timer. An expiration that was not read yet is discarded by that.
void Timer::wakeAt(Time at) {
  // An absolute time in the past fires at once; zero would disarm the timer.
  auto ns = std::max<int64_t>(at.time_since_epoch().count(), 1);
  itimerspec spec{};
  spec.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  // The kernel has no reason to refuse, but a system call filter may. Then the former wake-up stays
  // armed.
  for (int tries = 0; tries < 3; ++tries) {
    if (timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0) continue;
    wakeUp_ = at;
    return;
  }
}

void Timer::onReadable() {
  if (wakeUp_ < deadline_ && deadline_ != kNever && monotonicNow() < deadline_)
    return wakeAt(deadline_);
  uint64_t expirations;
  if (::read(fd_.get(), &expirations, sizeof expirations) != sizeof expirations)
    return;  // re-armed meanwhile
  wakeUp_ = kNever;
  if (deadline_ == kNever) return;  // disarmed meanwhile
  deadline_ = kNever;
  onTime_();
}

CoarseTimer::CoarseTimer(Loop& loop, std::function<void()> onTime)
    : loop_(loop), onTime_(std::move(onTime)) {
  auto call = [](struct ev_loop* raw, ev_timer* timer, int) {
    Loop::call(raw, [&] { static_cast<CoarseTimer*>(timer->data)->onTime_(); });
  };
  ev_timer_init(&timer_, call, 0, 0);
  timer_.data = this;
}

CoarseTimer::~CoarseTimer() {
  stop();
}

// libev counts from the time at which the loop last woke up, which may be long ago.
void CoarseTimer::start(Duration after) {
  stop();
  ev_now_update(loop_.raw());
  ev_timer_set(&timer_, std::chrono::duration<double>(after).count(), 0);
  ev_timer_start(loop_.raw(), &timer_);
}

void CoarseTimer::stop() {
  ev_timer_stop(loop_.raw(), &timer_);
}

namespace {
UniqueFd makeSignalFd(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) throw SystemError(errno, std::string("cannot make a signalfd: ") + std::strerror(errno));
  return fd;
}
}  // namespace

// A signalfd is used because libev's own signal handler writes to the loop's descriptor, and after
// one failed write it never reports a signal again. A blocked signal waits in the kernel until it
// is read.
SignalWatcher::SignalWatcher(Loop& loop, int signal, std::function<void()> onSignal)
    : fd_(makeSignalFd(signal)), onSignal_(std::move(onSignal)), watcher_(loop, fd_.get(), [this] {
        signalfd_siginfo info;
        if (::read(fd_.get(), &info, sizeof info) == sizeof info) onSignal_();
      }) {}

PrepareHook::PrepareHook(Loop& loop, std::function<void()> beforeWait)
    : loop_(loop), beforeWait_(std::move(beforeWait)) {
  auto call = [](struct ev_loop* raw, ev_prepare* p, int) {
    Loop::call(raw, [&] { static_cast<PrepareHook*>(p->data)->beforeWait_(); });
  };
  ev_prepare_init(&prepare_, call);
  prepare_.data = this;
  ev_prepare_start(loop_.raw(), &prepare_);
  auto nothing = [](struct ev_loop*, ev_idle*, int) {};
  ev_idle_init(&idle_, nothing);
}

PrepareHook::~PrepareHook() {
  ev_prepare_stop(loop_.raw(), &prepare_);
  ev_idle_stop(loop_.raw(), &idle_);
}

void PrepareHook::keepAwake(bool on) {
  if (on) {
    ev_idle_start(loop_.raw(), &idle_);
  } else {
    ev_idle_stop(loop_.raw(), &idle_);
  }
}

}  // namespace braid
