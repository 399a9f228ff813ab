#include "tunnel/stream/registry.h"

#include <utility>

namespace braid {

StreamHandle StreamRegistry::seat(Stream& stream) {
  if (free_.empty()) {
    free_.reserve(seats_.size() + 1);
    free_.push_back(static_cast<uint32_t>(seats_.size()));
    seats_.emplace_back();
  }
  uint32_t place = free_.back();
  free_.pop_back();
  seats_[place].stream = &stream;
  return {place, seats_[place].generation};
}

const StreamRegistry::Seat* StreamRegistry::seatOf(StreamHandle handle) const {
  if (!handle || handle.place >= seats_.size()) return nullptr;
  const Seat& seat = seats_[handle.place];
  return seat.generation == handle.generation ? &seat : nullptr;
}

void StreamRegistry::queue(uint32_t place) {
  Seat& seat = seats_[place];
  if (seat.queued) return;
  seat.queued = true;
  ready_.pushBack(std::move(place));
}

void StreamRegistry::announce(StreamHandle handle, uint32_t session) {
  if (!find(handle)) return;
  openings_[session].pushBack(uint32_t{handle.place});
  Seat& seat = seats_[handle.place];
  seat.opened = seat.queued = true;
}

void StreamRegistry::tell(StreamHandle handle, Word word) {
  if (!find(handle)) return;
  seats_[handle.place].words |= static_cast<uint8_t>(word);
  queue(handle.place);
}

void StreamRegistry::end(StreamHandle handle, std::optional<StreamCause> reset) {
  if (!find(handle)) return;
  Seat& seat = seats_[handle.place];
  seat.stream = nullptr;
  seat.ended = true;
  seat.reset = reset;
  queue(handle.place);
}

// A place that is still queued is freed when it is polled.
void StreamRegistry::release(StreamHandle handle) {
  if (!find(handle)) return;
  Seat& seat = seats_[handle.place];
  seat.stream = nullptr;
  if (!seat.queued) free(handle.place);
}

void StreamRegistry::free(uint32_t place) {
  Seat& seat = seats_[place];
  uint32_t generation = seat.generation + 1;
  seat = Seat{};
  seat.generation = generation ? generation : 1;
  free_.push_back(place);
}

// Takes the next place that has something to tell.
bool StreamRegistry::take(uint32_t& place) {
  if (!ready_.empty()) {
    place = ready_.front();
    ready_.popFront();
    return true;
  }
  while (!openings_.empty()) {
    auto turn = openings_.upper_bound(turn_);
    if (turn == openings_.end()) turn = openings_.begin();
    if (turn->second.empty()) {
      openings_.erase(turn);
      continue;
    }
    turn_ = turn->first;
    place = turn->second.front();
    turn->second.popFront();
    return true;
  }
  return false;
}

bool StreamRegistry::poll(StreamEvent& out) {
  for (uint32_t place = 0; take(place);) {
    Seat& seat = seats_[place];
    seat.queued = false;
    bool isReleased = !seat.stream && !seat.ended;
    auto said = [&](Word word) { return (seat.words & static_cast<uint8_t>(word)) != 0; };
    out = StreamEvent{};
    out.stream = {place, seat.generation};
    out.opened = std::exchange(seat.opened, false);
    out.readable = said(Word::kReadable) && seat.stream;
    out.writable = said(Word::kWritable) && seat.stream;
    out.done = seat.ended && !seat.reset;
    out.reset = seat.ended ? seat.reset : std::nullopt;
    seat.words = 0;
    bool isUnheardOf = out.opened && seat.ended;
    if (!seat.stream) free(place);
    // The driver need not know of a stream that began and ended since the last poll.
    if (!isReleased && !isUnheardOf) return true;
  }
  return false;
}

}  // namespace braid
