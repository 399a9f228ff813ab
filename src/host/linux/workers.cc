#include "host/linux/workers.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include "host/system.h"

namespace braid {

namespace {

constexpr const char* kThreadName = "braidd-worker";

UniqueFd makeBell() {
  UniqueFd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) throw SystemError(errno, std::string("cannot make an eventfd: ") + std::strerror(errno));
  return fd;
}

}  // namespace

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    assert(waiting_.empty() && done_.empty());
    stops_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::start(unsigned threads) {
  bell_ = makeBell();
  watcher_.emplace(loop_, bell_.get(), [this] { settle(); });
  for (unsigned i = 0; i < threads; ++i) {
    threads_.push_back(std::thread([this, i] { run(i + 1); }));
    ::pthread_setname_np(threads_.back().native_handle(), kThreadName);
  }
}

void Workers::post(Job& job) {
  assert(!job.underWay_);
  job.underWay_ = true;
  {
    std::lock_guard lock(mutex_);
    job.stage_ = Job::Stage::kWaits;
    job.tells_ = false;
    waiting_.pushBack(job);
  }
  wake_.notify_one();
}

void Workers::await(Job& job) {
  assert(job.underWay_);
  std::unique_lock lock(mutex_);
  if (job.stage_ == Job::Stage::kWaits) {
    waiting_.erase(job);
    lock.unlock();
    job.work_(0);
  } else {
    awaited_ = true;
    finished_.wait(lock, [&] { return job.stage_ == Job::Stage::kDone; });
    awaited_ = false;
    done_.erase(job);
    --doneCount_;
  }
  job.underWay_ = false;
}

bool Workers::isOver(Job& job, bool tell) {
  assert(job.underWay_);
  std::lock_guard lock(mutex_);
  if (job.stage_ != Job::Stage::kDone) {
    job.tells_ |= tell;
    return false;
  }
  done_.erase(job);
  --doneCount_;
  job.underWay_ = false;
  return true;
}

// Calls onDone of the jobs that are done at this time. Jobs that finish meanwhile signal the bell
// again, so that the loop can do other work in between.
void Workers::settle() {
  uint64_t tolls;
  [[maybe_unused]] ssize_t n = ::read(bell_.get(), &tolls, sizeof tolls);
  std::unique_lock lock(mutex_);
  rung_ = false;
  for (size_t left = doneCount_; left > 0 && doneCount_ > 0; --left) {
    Job* job = done_.popFront();
    --doneCount_;
    lock.unlock();
    job->underWay_ = false;
    job->onDone_();
    lock.lock();
  }
}

void Workers::run(unsigned number) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stops_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Job* job = waiting_.popFront();
    job->stage_ = Job::Stage::kRuns;
    lock.unlock();
    bool tells = job->work_(number);
    lock.lock();
    tells |= job->tells_;
    job->stage_ = Job::Stage::kDone;
    done_.pushBack(*job);
    ++doneCount_;
    if (awaited_) finished_.notify_one();
    if (!tells || std::exchange(rung_, true)) continue;
    lock.unlock();
    const uint64_t toll = 1;
    [[maybe_unused]] ssize_t n = ::write(bell_.get(), &toll, sizeof toll);
    lock.lock();
  }
}

}  // namespace braid
