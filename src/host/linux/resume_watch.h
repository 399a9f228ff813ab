#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "host/clock_watch.h"
#include "host/linux/loop.h"
#include "host/system.h"

namespace braid {

/// Whether this runs in a virtual machine, as far as the processor or the firmware says so.
bool isVirtualMachine();
/// Whether a message of the kernel's device events (uevents) says that this virtual machine has a
/// new generation: it was resumed from a snapshot, or is a copy of another one.
bool isNewGeneration(ByteView uevent);

/// Watches for what makes this process a copy of one that may go on elsewhere, or has it go on from
/// an earlier state of its own: the machine is suspended, or is resumed from a snapshot.
class ResumeWatch {
 public:
  /// `loop` must outlive this object. A host that refuses device events is watched by its clocks
  /// alone.
  explicit ResumeWatch(Loop& loop);

  /// A line that says what has happened since the last call; nullopt: nothing was seen. It
  /// reads four clocks, on most machines without a system call.
  std::optional<std::string> take();

 private:
  void onEvents();

  ClockWatch clocks_;
  UniqueFd events_;
  std::optional<IoWatcher> watcher_;
  bool isNewGeneration_ = false;
};

}  // namespace braid
