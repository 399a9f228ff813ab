#pragma once

// Writes the recovery trace as JSON lines, one for each event, with names in the style of qlog
// (docs/operations.md, "Recovery trace"). A thread of its own formats and writes, so that a slow disk does
// not keep the daemon from its packets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "host/unique_fd.h"
#include "tunnel/lane/trace.h"

namespace braid {

/// One event as a line of JSON with its line end: {"time":MS,"name":NAME,"data":{...}}. `time` counts from
/// `start`; `data` holds the fields that the event's kind names.
std::string traceLine(const TraceEvent& event, Time start);
std::string traceLine(const StreamTrace& event, Time start);

/// Opens a file to add a trace to; a new one has mode 0640. Throws SystemError with a remedy.
UniqueFd openTraceFile(const std::string& path);
/// Why a file that somebody else opened can take no trace; empty: it can. The file must be a regular one: writing
/// to anything else may wait for ever.
std::string traceFileProblem(int fd);

/// One trace, from construction to destruction.
class TraceWriter : public TraceSink {
 public:
  static constexpr size_t kMaxWaiting = 16384;  ///< events, 160 bytes each; further ones are dropped
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  ///< of a trace; further events are dropped
  static constexpr Duration kInterval = 100ms;              ///< an event waits at most so long for its write
  static constexpr Duration kFinalWait = 200ms;             ///< for the last events at destruction

  /// Starts the thread; call after privileges were dropped. `maxBytes`: for tests.
  TraceWriter(UniqueFd file, Time start, uint64_t maxBytes = kMaxBytes);
  /// Writes what waits; gives up after kFinalWait.
  ~TraceWriter() override;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Takes a copy; allocates nothing and waits for no file.
  void onTrace(const TraceEvent& event) override;
  void onStream(const StreamTrace& event) override;
  /// Events written and dropped so far, and why the last ones were.
  TraceStatus status() const;

 private:
  template <typename Event>
  void add(const Event& event);

  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace braid
