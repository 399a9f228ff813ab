#include "gateway/log/trace_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "host/system.h"

namespace braid {
namespace {

using nlohmann::ordered_json;
using TraceKind = TraceEvent::Kind;
using TraceLine = std::variant<TraceEvent, StreamTrace>;

constexpr const char* kWriteRemedy =
    "name a file in a folder that the daemon may write to; a new folder needs a restart";
constexpr size_t kChunk = 64 << 10;  // bytes of one write

ordered_json traceData(const TraceEvent& e) {
  ordered_json data{{"session", e.session}};
  auto packet = [&] {
    data.update({{"subflow", e.subflow.value()}, {"packet_number", e.pn.value()}});
  };
  auto carrier = [&] {
    data.update({{"on_subflow", e.on.value()}, {"on_packet_number", e.onPn.value()}});
  };
  auto block = [&] { data.update({{"block", e.block.value()}, {"k", e.k}, {"m", e.m}}); };
  switch (e.kind) {
    case TraceKind::kPacketLost:
      packet();
      data["loss_rate"] = e.lossRate;
      break;
    case TraceKind::kCopySent:
      packet();
      carrier();
      break;
    case TraceKind::kBlockStarted:
      block();
      data.update({{"subflow", e.subflow.value()}, {"loss_rate", e.lossRate}});
      break;
    case TraceKind::kParitySent:
    case TraceKind::kParityReceived:
      block();
      data["index"] = e.index;
      carrier();
      break;
    case TraceKind::kBlockDecoded:
      data["block"] = e.block.value();
      packet();
      break;
    case TraceKind::kPacketRecovered:
      packet();
      break;
  }
  return data;
}

constexpr const char* kStreamCauseNames[] = {"reset", "refused", "unreachable", "timed_out",
                                             "limit", "gone",    "forbidden"};
static_assert(std::size(kStreamCauseNames) == kStreamCauses);

// Milliseconds, rounded to whole microseconds.
double milliseconds(Duration d) {
  return std::round(toMilliseconds(d) * 1000) / 1000;
}

std::string traceText(double ms, const char* name, ordered_json data) {
  return ordered_json{{"time", ms}, {"name", name}, {"data", std::move(data)}}.dump() + "\n";
}

}  // namespace

std::string traceLine(const TraceEvent& event, Time start) {
  return traceText(milliseconds(event.time - start), traceName(event.kind), traceData(event));
}

std::string traceLine(const StreamTrace& event, Time start) {
  ordered_json data{{"session", event.session},
                    {"stream", event.stream.value()},
                    {"opened_by", event.isOwn ? "this" : "peer"},
                    {"source", event.ends.source.toString()},
                    {"destination", event.ends.destination.toString()}};
  if (event.hasEnded) {
    data.update({{"sent_bytes", event.sentBytes},
                 {"received_bytes", event.receivedBytes},
                 {"lasted_ms", milliseconds(event.time - event.begun)}});
    if (event.firstByte != kNever)
      data["first_byte_ms"] = milliseconds(event.firstByte - event.begun);
    data["end"] = event.cause ? kStreamCauseNames[static_cast<size_t>(*event.cause)] : "done";
  }
  return traceText(milliseconds(event.time - start),
                   event.hasEnded ? "stream:ended" : "stream:opened", std::move(data));
}

std::string traceFileProblem(int fd) {
  struct stat info {};
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fstat(fd, &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  if ((flags & O_ACCMODE) == O_RDONLY) return "it is open for reading only";
  return {};
}

UniqueFd openTraceFile(const std::string& path) {
  // O_NONBLOCK: a pipe without a reader must not block the daemon.
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640));
  if (!file) {
    int error = errno;
    throw SystemError(error, "cannot write the trace " + path + ": " + std::strerror(error) + "; " +
                                 kWriteRemedy);
  }
  if (std::string problem = traceFileProblem(file.get()); !problem.empty())
    throw SystemError(EINVAL, "cannot write the trace " + path + ": " + problem + "; name a file");
  return file;
}

// State shared by the event loop and the thread; lives until both are gone.
struct TraceWriter::Shared {
  Shared(UniqueFd f, Time s, uint64_t m) : file(std::move(f)), start(s), maxBytes(m), last(s) {
    waiting.reserve(kMaxWaiting);
    batch.reserve(kMaxWaiting);
  }

  // The next members are used by the thread only.
  const UniqueFd file;
  const Time start;
  const uint64_t maxBytes;
  std::vector<TraceLine> batch;
  uint64_t bytes = 0;
  uint64_t reported = 0;  // number of dropped events that a line in the file reports
  std::string rest;       // rest of a line of which the file has only the beginning
  Time last;              // time of the last event

  mutable std::mutex mutex;
  std::condition_variable wake, ended;
  std::vector<TraceLine> waiting;
  TraceStatus status{true, 0, 0, {}};
  bool stop = false, done = false;

  void run();
  void writeUntilStopped();
  uint64_t writeLines(const std::string& lines);
  void writeEvents(const std::string& lines, uint64_t events);
  void writeBatch();
  void reportDropped();
};

// Returns how many of `lines` are in the file. A line that was written in part counts, too: its
// rest is written before the next lines.
uint64_t TraceWriter::Shared::writeLines(const std::string& lines) {
  std::string why;
  if (bytes + lines.size() > maxBytes)
    why = "the trace has reached " + std::to_string(maxBytes) + " bytes";
  const std::string text = rest + lines;
  size_t sent = 0;
  while (why.empty() && sent < text.size()) {
    ssize_t n = write(file.get(), text.data() + sent, text.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) why = std::strerror(errno);
    if (n > 0) sent += static_cast<size_t>(n);
  }
  bytes += sent;
  const size_t own = sent - std::min(sent, rest.size());
  const bool whole = sent == 0 ? rest.empty() : text[sent - 1] == '\n';
  const auto end = lines.begin() + static_cast<std::ptrdiff_t>(own);
  auto in = static_cast<uint64_t>(std::count(lines.begin(), end, '\n'));
  if (own > 0 && !whole) ++in;
  rest = whole ? "" : text.substr(sent, text.find('\n', sent) + 1 - sent);
  std::lock_guard lock(mutex);
  status.problem = why;
  return in;
}

void TraceWriter::Shared::writeEvents(const std::string& lines, uint64_t events) {
  uint64_t in = writeLines(lines);
  std::lock_guard lock(mutex);
  status.written += in;
  status.dropped += events - in;
}

void TraceWriter::Shared::reportDropped() {
  uint64_t total = 0;
  {
    std::lock_guard lock(mutex);
    total = status.dropped;
  }
  if (total == reported) return;
  if (writeLines(traceText(milliseconds(last - start), "recovery:events_dropped",
                           {{"count", total - reported}})) > 0)
    reported = total;
}

void TraceWriter::Shared::writeBatch() {
  reportDropped();
  std::string text;
  uint64_t events = 0;
  for (const TraceLine& line : batch) {
    std::visit(
        [&](const auto& event) {
          text += traceLine(event, start);
          last = event.time;
        },
        line);
    ++events;
    if (text.size() < kChunk) continue;
    writeEvents(text, std::exchange(events, 0));
    text.clear();
  }
  if (events > 0) writeEvents(text, events);
}

void TraceWriter::Shared::writeUntilStopped() {
  using std::chrono::system_clock;
  auto wall =
      std::chrono::duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch());
  writeLines(traceText(0, "recovery:trace_started", {{"unix_ms", wall.count()}}));
  std::unique_lock lock(mutex);
  bool end = false;
  while (!end) {
    wake.wait_for(lock, kInterval, [&] { return stop || waiting.size() >= kMaxWaiting / 2; });
    end = stop;
    if (waiting.empty()) continue;
    batch.clear();
    std::swap(batch, waiting);
    lock.unlock();
    writeBatch();
    lock.lock();
  }
  lock.unlock();
  reportDropped();
}

// Runs the thread. When memory runs out, only the trace ends and not the daemon; later events count
// as dropped.
void TraceWriter::Shared::run() {
  bool starved = false;
  try {
    writeUntilStopped();
  } catch (const std::bad_alloc&) {
    starved = true;
  }
  std::lock_guard lock(mutex);
  if (starved) status.problem = "no memory left";  // short enough to need no memory allocation
  done = true;
  ended.notify_all();
}

TraceWriter::TraceWriter(UniqueFd file, Time start, uint64_t maxBytes)
    : shared_(std::make_shared<Shared>(std::move(file), start, maxBytes)) {
  std::thread([shared = shared_] { shared->run(); }).detach();
}

TraceWriter::~TraceWriter() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->wake.notify_all();
  shared_->ended.wait_for(lock, kFinalWait, [this] { return shared_->done; });
}

void TraceWriter::onTrace(const TraceEvent& event) {
  add(event);
}

void TraceWriter::onStream(const StreamTrace& event) {
  add(event);
}

template <typename Event>
void TraceWriter::add(const Event& event) {
  std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.size() >= kMaxWaiting) {
    ++shared_->status.dropped;
    return;
  }
  shared_->waiting.push_back(event);
  if (shared_->waiting.size() == kMaxWaiting / 2) shared_->wake.notify_one();
}

TraceStatus TraceWriter::status() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->status;
}

}  // namespace braid
