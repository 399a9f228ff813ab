#pragma once

// Writes the recovery trace as JSON lines, one for each event, with names in the style of qlog
// (docs/figures.md, "Recovery trace"). A separate thread formats and writes, so that a slow
// disk does not delay packets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "host/system.h"
#include "tunnel/queue/trace.h"

namespace braid {

/// One event as a line of JSON with its line end: {"time":MS,"name":NAME,"data":{...}}. `time`
/// counts from `start`; `data` holds the fields of the event's kind.
std::string traceLine(const TraceEvent& event, Time start);
std::string traceLine(const StreamTrace& event, Time start);

/// Opens a file to append a trace to; a new file gets mode 0640. Throws SystemError with a remedy.
UniqueFd openTraceFile(const std::string& path);
/// Says why a file that another process opened cannot take a trace; empty: it can. The file must be
/// a regular one, because writing to anything else may block forever.
std::string traceFileProblem(int fd);

/// One trace: it begins with the construction of this object and ends with its destruction.
class TraceWriter : public TraceSink {
 public:
  static constexpr size_t kMaxWaiting =
      16384;  ///< events, 160 bytes each; further ones are dropped
  static constexpr uint64_t kMaxBytes = uint64_t{1}
                                        << 30;   ///< of a trace; further events are dropped
  static constexpr Duration kInterval = 100ms;   ///< an event is written after at most this time
  static constexpr Duration kFinalWait = 200ms;  ///< for the last events, at destruction

  /// Starts the thread; call after privileges were dropped. `maxBytes`: other than kMaxBytes in
  /// tests.
  TraceWriter(UniqueFd file, Time start, uint64_t maxBytes = kMaxBytes);
  /// Writes the events that wait; gives up after kFinalWait.
  ~TraceWriter() override;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Copies the event; allocates no memory and does not wait for the file.
  void onTrace(const TraceEvent& event) override;
  void onStream(const StreamTrace& event) override;
  /// The numbers of events written and dropped since the start, and why the last ones were dropped.
  TraceStatus status() const;

 private:
  template <typename Event>
  void add(const Event& event);

  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace braid
