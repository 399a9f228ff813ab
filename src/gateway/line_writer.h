#pragma once

#include <string>
#include <string_view>

#include "host/unique_fd.h"

namespace braid {

/// Writes lines to a descriptor that others own, and never waits for it: not for a journal that hangs, a pipe
/// that nobody reads or a terminal that was stopped. (A terminal that this process may not open, another user's say,
/// is waited for when it stops within a line.)
class LineWriter {
 public:
  explicit LineWriter(int fd);

  /// False: there is no room now, or nobody to read any more, and nothing of the line was written. What the
  /// descriptor took a part of is completed by later calls, before their own lines.
  bool write(std::string_view line);

 private:
  size_t writeSome(std::string_view bytes);

  UniqueFd terminal_;  // of our own; empty: none is needed, or to be had
  int fd_;
  bool isSocket_;
  std::string rest_;  // of a line that was taken in part
};

}  // namespace braid
