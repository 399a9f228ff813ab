#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/containers.h"
#include "host/linux/loop.h"
#include "host/system.h"

namespace braid {

class Workers;

/// A piece of work that its owner, the loop's thread, can let another thread do, any number of
/// times. While the job is under way, the data that it uses belongs to the worker; afterwards it
/// belongs to the owner again. A job must not be destroyed while it is under way.
class Job {
 public:
  /// `work` runs on a worker and gets that worker's number: 1 to Workers::kMost - 1, or 0 for the
  /// owner's thread. It must not throw. `onDone` is called on the loop afterwards: soon if `work`
  /// returned true, else when the loop wakes up for another reason.
  Job(std::function<bool(unsigned)> work, std::function<void()> onDone)
      : work_(std::move(work)), onDone_(std::move(onDone)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Whether the job is under way: from Workers::post() until onDone is called, Workers::await()
  /// returns or Workers::isOver() returns true. Only for the owner's thread.
  bool underWay() const { return underWay_; }

 private:
  friend class Workers;
  enum class Stage { kWaits, kRuns, kDone };

  std::function<bool(unsigned)> work_;
  std::function<void()> onDone_;
  bool underWay_ = false;
  bool tells_ = false;  // onDone is to be called soon, whatever `work` returns
  Stage stage_ = Stage::kDone;
  ListLink<Job> link_;
};

/// Worker threads in addition to the loop's thread. They do jobs in the order in which they were
/// posted; a job runs on one thread at a time. A mutex guards the job lists. That is cheap enough,
/// because there are only as many jobs as sockets and devices have directions, and each job is for
/// a whole batch of packets.
class Workers {
 public:
  /// The most threads of a gateway, including the loop's thread.
  static constexpr unsigned kMost = 8;
  /// Packets that make it worth waking another thread: kWorthHandingOver for writing,
  /// kWorthReadingAhead for reading. A thread that is reading ahead continues with kFew packets or
  /// more.
  static constexpr size_t kWorthHandingOver = 16, kWorthReadingAhead = 32, kFew = 8;

  /// `loop` must outlive this.
  explicit Workers(Loop& loop) : loop_(loop) {}
  /// No job may be under way at this time.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts `threads` threads. Call once, after privileges were dropped. Throws std::system_error
  /// or SystemError.
  void start(unsigned threads);
  /// Whether jobs may be posted.
  bool started() const { return !threads_.empty(); }

  /// Queues a job for the workers. It must not be under way.
  void post(Job& job);
  /// Waits until a job that is under way is done, or does it on this thread if no worker has begun
  /// it. Job::onDone is not called.
  void await(Job& job);
  /// Whether a job that is under way is done. If so, Job::onDone is not called. If not, and `tell`
  /// is true, Job::onDone will be called soon after it is done.
  bool isOver(Job& job, bool tell);

 private:
  using Jobs = IntrusiveList<Job, &Job::link_>;
  void run(unsigned number);
  void settle();

  Loop& loop_;
  UniqueFd bell_;  ///< an eventfd that wakes the loop when there are jobs in done_
  std::optional<IoWatcher> watcher_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  ///< guards all below, and Job::stage_ and tells_
  std::condition_variable wake_, finished_;
  Jobs waiting_, done_;
  size_t doneCount_ = 0;
  bool rung_ = false;     ///< bell_ was signalled since settle() last read it
  bool awaited_ = false;  ///< await() waits for finished_
  bool stops_ = false;
};

}  // namespace braid
