#include "ctl/client/interruption.h"

#include <ctime>
#include <stdexcept>

namespace braid {

namespace {

sigset_t interruptions() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Interruption::Interruption() {
  sigset_t set = interruptions();
  sigaddset(&set, SIGPIPE);  // must not end in the middle because nobody reads its output
  sigprocmask(SIG_BLOCK, &set, &before_);
}

Interruption::~Interruption() {
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Interruption::check() {
  sigset_t set = interruptions(), waiting;
  sigpending(&waiting);
  bool any = false;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) any |= sigismember(&waiting, signal) == 1;
  if (!any) return;
  timespec now{};
  sigtimedwait(&set, nullptr, &now);
  throw std::runtime_error("interrupted; nothing is left of this attempt at this gateway");
}

}  // namespace braid
