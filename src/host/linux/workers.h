#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/intrusive_list.h"
#include "host/linux/loop.h"
#include "host/unique_fd.h"

namespace braid {

class Workers;

/// A piece of work that its owner, the loop's thread, may have done by another thread, again and again. What the work
/// touches is the owner's again when the job is not under way any more. Must not be destroyed while it is.
class Job {
 public:
  /// `work` runs on a worker, and is told which one: 1 to Workers::kMost - 1, or 0 for the owner; it must not throw.
  /// `onDone` follows on the loop: soon when `work` gave true, else when the loop has something to do anyway.
  Job(std::function<bool(unsigned)> work, std::function<void()> onDone)
      : work_(std::move(work)), onDone_(std::move(onDone)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// From Workers::post() until onDone is called, Workers::await() returns or isOver() gives true. For the owner.
  bool underWay() const { return underWay_; }

 private:
  friend class Workers;
  enum class Stage { kWaits, kRuns, kDone };

  std::function<bool(unsigned)> work_;
  std::function<void()> onDone_;
  bool underWay_ = false;
  bool tells_ = false;  // whatever `work` gives
  Stage stage_ = Stage::kDone;
  ListLink<Job> link_;
};

/// Threads beside the loop's that do jobs, each job on one of them at a time, in the order in which they were posted.
/// There are as many jobs as sockets and devices have directions, and each is for a batch of packets: so a lock guards
/// the lists of them.
class Workers {
 public:
  /// Of a gateway, the loop's thread among them.
  static constexpr unsigned kMost = 8;
  /// Packets that are worth the wake-up of another thread, when written and when read; fewer keep one awake. Ours.
  static constexpr size_t kWorthHandingOver = 16, kWorthReadingAhead = 32, kFew = 8;

  /// `loop` must outlive this.
  explicit Workers(Loop& loop) : loop_(loop) {}
  /// No job may be under way.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts so many threads; call once, after privileges were dropped. Throws std::system_error, or SystemError.
  void start(unsigned threads);
  /// Whether jobs may be posted.
  bool started() const { return !threads_.empty(); }

  /// The job is not under way.
  void post(Job& job);
  /// Waits until a job that is under way is done, or does it here when nobody has begun it. Job::onDone is not called.
  void await(Job& job);
  /// Whether a job that is under way is done: then Job::onDone is not called. `tell`: else it will be soon.
  bool isOver(Job& job, bool tell);

 private:
  using Jobs = IntrusiveList<Job, &Job::link_>;
  void run(unsigned number);
  void settle();

  Loop& loop_;
  UniqueFd bell_;  ///< an eventfd: there are jobs in done_
  std::optional<IoWatcher> watcher_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  ///< guards all below, and Job::stage_ and tells_
  std::condition_variable wake_, finished_;
  Jobs waiting_, done_;
  size_t doneCount_ = 0;
  bool rung_ = false;     ///< the bell, since settle() took its toll
  bool awaited_ = false;  ///< finished_ is waited for
  bool stops_ = false;
};

}  // namespace braid
