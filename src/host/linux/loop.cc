#include "host/linux/loop.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/system_error.h"

namespace braid {

Time monotonicNow() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Time(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

Loop::Loop() : loop_(ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV)) {
  if (!loop_) throw SystemError(ENOSYS, "cannot make an event loop");
}
Loop::~Loop() {
  ev_loop_destroy(loop_);
}
void Loop::run() {
  ev_run(loop_, 0);
}
void Loop::stop() {
  ev_break(loop_, EVBREAK_ALL);
}
void Loop::runOnce(bool wait) {
  ev_run(loop_, wait ? EVRUN_ONCE : EVRUN_NOWAIT);
}

IoWatcher::IoWatcher(Loop& loop, int fd, Callback onReadable, Callback onWritable)
    : loop_(loop), onReadable_(std::move(onReadable)), onWritable_(std::move(onWritable)) {
  auto call = [](struct ev_loop*, ev_io* io, int events) {
    auto* self = static_cast<IoWatcher*>(io->data);
    if ((events & EV_WRITE) && self->onWritable_) self->onWritable_();
    if (events & EV_READ) self->onReadable_();
  };
  ev_io_init(&io_, call, fd, EV_READ);
  io_.data = this;
  ev_io_start(loop_.raw(), &io_);
}

IoWatcher::~IoWatcher() {
  ev_io_stop(loop_.raw(), &io_);
}
void IoWatcher::wantWrite(bool on) {
  want(EV_WRITE, on);
}
void IoWatcher::wantRead(bool on) {
  want(EV_READ, on);
}

void IoWatcher::want(int bit, bool on) {
  int events = on ? events_ | bit : events_ & ~bit;
  if (events == events_) return;
  events_ = events;
  ev_io_stop(loop_.raw(), &io_);
  ev_io_set(&io_, io_.fd, events);
  if (events) ev_io_start(loop_.raw(), &io_);
}

namespace {

UniqueFd makeTimer() {
  UniqueFd fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd) throw SystemError(errno, std::string("cannot make a timer: ") + std::strerror(errno));
  return fd;
}

}  // namespace

Timer::Timer(Loop& loop, std::function<void()> onTime)
    : fd_(makeTimer()), onTime_(std::move(onTime)), watcher_(loop, fd_.get(), [this] { onReadable(); }) {}

void Timer::arm(Time deadline) {
  if (deadline == deadline_) return;
  deadline_ = deadline;
  itimerspec spec{};  // zero disarms
  if (deadline != kNever) {
    // An absolute time that has passed fires at once; zero would disarm.
    auto ns = std::max<int64_t>(deadline.time_since_epoch().count(), 1);
    spec.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Timer::onReadable() {
  uint64_t expirations;
  if (::read(fd_.get(), &expirations, sizeof expirations) != sizeof expirations)
    return;  // re-armed meanwhile
  deadline_ = kNever;
  onTime_();
}

SignalWatcher::SignalWatcher(Loop& loop, int signal, std::function<void()> onSignal)
    : loop_(loop), onSignal_(std::move(onSignal)) {
  auto call = [](struct ev_loop*, ev_signal* s, int) { static_cast<SignalWatcher*>(s->data)->onSignal_(); };
  ev_signal_init(&signal_, call, signal);
  signal_.data = this;
  ev_signal_start(loop_.raw(), &signal_);
}

SignalWatcher::~SignalWatcher() {
  ev_signal_stop(loop_.raw(), &signal_);
}

PrepareHook::PrepareHook(Loop& loop, std::function<void()> beforeWait)
    : loop_(loop), beforeWait_(std::move(beforeWait)) {
  auto call = [](struct ev_loop*, ev_prepare* p, int) { static_cast<PrepareHook*>(p->data)->beforeWait_(); };
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
