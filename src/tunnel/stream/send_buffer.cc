#include "tunnel/stream/send_buffer.h"

#include <algorithm>
#include <cstring>

namespace braid {

namespace {
/// Bytes of the stream that fit a unit in which `used` bytes are taken; 0 when none fit.
size_t roomOf(size_t unit, size_t used) {
  return unit > used ? unit - used : 0;
}
}  // namespace

// nullptr when no buffer is free.
StreamChunk* SendBuffer::make(const Make& make, uint64_t offset) {
  Packet packet = make.pool.allocate();
  if (!packet) return nullptr;
  Writer prefix(packet.room());
  writeStreamPrefix(prefix, make.stream, make.opening);
  packet.setSize(prefix.size());
  StreamChunk* chunk = store_->make(std::move(packet), offset);
  chunk->prefix = static_cast<uint16_t>(prefix.size());
  chunk->frame = StreamFrame::kFirst | (make.opening ? StreamFrame::kOpen : uint8_t{0});
  return chunk;
}

bool SendBuffer::push(const Make& make) {
  StreamChunk* chunk = this->make(make, end_);
  if (!chunk) return false;
  chain_.pushBack(*chunk);
  ++packets_;
  return true;
}

size_t SendBuffer::roomInLast(size_t unit) const {
  if (chain_.empty() || (shown_ && chain_.first == chain_.last)) return 0;
  const Packet& last = chain_.last->packet;
  return std::min(roomOf(unit, last.size()), last.tailroom());
}

// Adds bytes to the chunk that already lie behind its own.
size_t SendBuffer::take(StreamChunk& chunk, size_t bytes, size_t unit) {
  Packet& packet = chunk.packet;
  size_t taken = std::min({bytes, roomOf(unit, packet.size()), packet.tailroom()});
  packet.append(taken);
  end_ += taken;
  return taken;
}

size_t SendBuffer::write(ByteView& bytes, const Make& make) {
  release();
  size_t grown = 0;
  while (!bytes.empty()) {
    size_t room = roomInLast(make.unit);
    if (room == 0) {
      if (!push(make)) break;
      grown += chain_.last->packet.size();
      room = roomInLast(make.unit);
      if (room == 0) break;
    }
    size_t n = std::min(room, bytes.size());
    std::memcpy(chain_.last->packet.append(n), bytes.data(), n);
    end_ += n;
    grown += n;
    bytes = bytes.subspan(n);
  }
  return grown;
}

size_t SendBuffer::room(size_t most, std::span<ByteSpan> buffers, const Make& make) {
  release();
  size_t count = 0;
  auto show = [&](Packet& packet, size_t room) {
    size_t n = std::min(room, most);
    buffers[count++] = {packet.data() + packet.size(), n};
    most -= n;
  };
  if (size_t room = roomInLast(make.unit); room > 0 && most > 0 && !buffers.empty())
    show(chain_.last->packet, room);
  while (most > 0 && count < buffers.size()) {
    StreamChunk* chunk = this->make(make, 0);
    if (!chunk) break;
    spare_.pushBack(*chunk);
    size_t room = std::min(roomOf(make.unit, chunk->packet.size()), chunk->packet.tailroom());
    if (room == 0) break;
    show(chunk->packet, room);
  }
  return count;
}

size_t SendBuffer::commit(size_t bytes, size_t unit) {
  size_t grown = 0;
  if (size_t room = roomInLast(unit); room > 0) {
    size_t taken = take(*chain_.last, bytes, unit);
    grown += taken;
    bytes -= taken;
  }
  while (bytes > 0 && !spare_.empty()) {
    StreamChunk* chunk = spare_.popFront();
    chunk->offset = end_;
    size_t taken = take(*chunk, bytes, unit);
    grown += chunk->packet.size();
    bytes -= taken;
    chain_.pushBack(*chunk);
    ++packets_;
  }
  release();
  return grown;
}

size_t SendBuffer::finish(const Make& make) {
  release();
  if (finished_) return 0;
  size_t grown = 0;
  if (chain_.empty() || (shown_ && chain_.first == chain_.last)) {
    if (!push(make)) return 0;
    grown = chain_.last->packet.size();
  }
  chain_.last->frame |= StreamFrame::kFin;
  finished_ = true;
  return grown;
}

void SendBuffer::release() {
  while (!spare_.empty()) store_->give(spare_.popFront());
}

const Packet* SendBuffer::prepare(UnitRange& range, const Make& make, size_t& grown) {
  if (chain_.empty()) return nullptr;
  shown_ = true;
  if (chain_.first->packet.size() > make.unit) cut(range, make, grown);
  range = {chain_.first->offset, chain_.first->frame};
  return &chain_.first->packet;
}

bool SendBuffer::cut(UnitRange& range, const Make& make, size_t& grown) {
  StreamChunk& first = *chain_.first;
  Packet rest = make.pool.allocate();
  size_t stays = rest ? cutStreamUnit(first.frame, first.packet, make.unit, rest) : 0;
  if (stays == 0) return false;
  StreamChunk* second = store_->make(std::move(rest), first.offset + stays);
  second->prefix = first.prefix;
  second->frame = first.frame;
  first.frame &= static_cast<uint8_t>(~StreamFrame::kFin);
  chain_.insertAfter(first, *second);
  ++packets_;
  grown += first.prefix;
  range = {first.offset, first.frame};
  return true;
}

Packet SendBuffer::handOut() {
  StreamChunk* chunk = chain_.popFront();
  shown_ = false;
  --packets_;
  left_ = chunk->end();
  Packet packet = std::move(chunk->packet);
  store_->give(chunk);
  return packet;
}

void SendBuffer::clear() {
  release();
  while (!chain_.empty()) store_->give(chain_.popFront());
  shown_ = false;
  packets_ = 0;
  left_ = end_;
}

}  // namespace braid
