#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tunnel/api/streams.h"

namespace braid::gateway_test {

/// Streams without a tunnel: a stream that is opened here also arrives here, and its bytes arrive
/// at once. As in the tunnel, the bytes in each direction are limited, here by `kRoom`.
class LoopLanes final : public StreamApi {
 public:
  static constexpr size_t kRoom = 100'000;

  /// Destinations to which no stream can be opened.
  std::set<Address> closed;
  /// Makes open() fail although canOpen() returned true.
  bool full = false;
  /// Makes canOpen() return false although open() still succeeds, as when a limit is near.
  bool nearlyFull = false;
  /// Whether the peer says when a destination has accepted.
  bool answers = true;
  /// The causes of resets that the gateway requested, in order.
  std::vector<StreamCause> resets;
  /// Ends of streams that are alive.
  size_t alive() const { return ends_.size(); }

  bool canOpen(const Address& destination) const override {
    return !nearlyFull && !closed.contains(destination);
  }
  StreamHandle open(const StreamEnds& ends, Time) override {
    if (full || closed.contains(ends.destination.address)) return {};
    StreamHandle near = add(ends), far = add(ends);
    ends_[near].other = far;
    ends_[far].other = near;
    tell(far).opened = true;
    return near;
  }
  bool canAsk(const Address&) const override { return answers; }
  StreamHandle openAsking(const StreamEnds& ends, Time now) override {
    StreamHandle near = answers ? open(ends, now) : StreamHandle{};
    if (near) ends_[near].asks = true;
    return near;
  }
  void answer(StreamHandle stream) override {
    End* end = find(stream);
    if (end && std::exchange(other(*end).asks, false)) tell(end->other).answered = true;
  }
  const StreamEnds* ends(StreamHandle stream) const override {
    const End* end = find(stream);
    return end ? &end->ends : nullptr;
  }

  size_t writable(StreamHandle stream, size_t wanted) override {
    End* end = find(stream);
    if (!end || end->finished) return 0;
    size_t free = kRoom - std::min(kRoom, other(*end).waiting.size());
    end->wants = free < wanted;
    return free;
  }
  size_t room(StreamHandle stream, std::span<ByteSpan> buffers) override {
    size_t free = std::min(writable(stream, 1), sizeof buffer_);
    if (free == 0 || buffers.empty()) return 0;
    size_t half = free / 2;  // more than one piece, as in the tunnel
    if (half == 0 || buffers.size() == 1)
      return buffers[0] = ByteSpan(buffer_).first(free), size_t{1};
    buffers[0] = ByteSpan(buffer_).first(half);
    buffers[1] = ByteSpan(buffer_).subspan(half, free - half);
    return 2;
  }
  void commit(StreamHandle stream, size_t bytes, Time now) override {
    write(stream, ByteView(buffer_).first(bytes), now);
  }
  size_t write(StreamHandle stream, ByteView bytes, Time) override {
    size_t n = std::min(bytes.size(), writable(stream, 1));
    if (n == 0) return 0;
    End* end = find(stream);
    std::string& to = other(*end).waiting;
    to.append(reinterpret_cast<const char*>(bytes.data()), n);
    tell(end->other).readable = true;
    return n;
  }
  void finish(StreamHandle stream, Time) override {
    End* end = find(stream);
    if (!end || end->finished) return;
    end->finished = true;
    tell(end->other).readable = true;
    settle(stream);
  }
  void reset(StreamHandle stream, StreamCause cause, Time) override {
    End* end = find(stream);
    if (!end) return;
    resets.push_back(cause);
    tell(end->other).reset = cause;
    ends_.erase(end->other);
    ends_.erase(stream);
  }

  size_t readable(StreamHandle stream) const override {
    const End* end = find(stream);
    return end ? end->waiting.size() : 0;
  }
  size_t peek(StreamHandle stream, std::span<ByteView> views) const override {
    const End* end = find(stream);
    if (!end || end->waiting.empty() || views.empty()) return 0;
    views[0] = {reinterpret_cast<const uint8_t*>(end->waiting.data()), end->waiting.size()};
    return 1;
  }
  void consume(StreamHandle stream, size_t bytes, Time) override {
    End* end = find(stream);
    if (!end || bytes == 0) return;
    end->waiting.erase(0, bytes);
    if (End& writer = other(*end); writer.wants) {
      writer.wants = false;
      tell(end->other).writable = true;
    }
    settle(stream);
  }
  bool isAtEnd(StreamHandle stream) const override {
    const End* end = find(stream);
    return end && end->waiting.empty() && ends_.at(end->other).finished;
  }

  bool pollStream(StreamEvent& out) override {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
  }

 private:
  struct End {
    StreamEnds ends;
    StreamHandle other;
    std::string waiting;  ///< bytes that arrived and were not read
    bool finished = false, wants = false;
    bool asks = false;  ///< waits for an answer
  };

  StreamHandle add(const StreamEnds& ends) {
    StreamHandle handle{nextPlace_++ % 10'000, ++generation_};
    ends_[handle].ends = ends;
    return handle;
  }
  End* find(StreamHandle stream) {
    auto at = ends_.find(stream);
    return at == ends_.end() ? nullptr : &at->second;
  }
  const End* find(StreamHandle stream) const {
    auto at = ends_.find(stream);
    return at == ends_.end() ? nullptr : &at->second;
  }
  End& other(const End& end) { return ends_.at(end.other); }
  StreamEvent& tell(StreamHandle stream) {
    StreamEvent event;
    event.stream = stream;
    return events_.emplace_back(event);
  }
  // When both directions have ended, ends both handles.
  void settle(StreamHandle stream) {
    StreamHandle far = ends_.at(stream).other;
    if (!isAtEnd(stream) || !isAtEnd(far)) return;
    tell(stream).done = true;
    tell(far).done = true;
    ends_.erase(stream);
    ends_.erase(far);
  }

  std::map<StreamHandle, End> ends_;
  std::deque<StreamEvent> events_;
  uint32_t nextPlace_ = 0, generation_ = 0;
  uint8_t buffer_[70'000];
};

}  // namespace braid::gateway_test
