#include "host/linux/tun_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "inet/frame.h"

namespace braid {

namespace {

void give(Packet packet, DeviceCounters& counters, const TunDevice::Sink& sink) {
  ++counters.readPackets;
  counters.readBytes += packet.size();
  sink(std::move(packet));
}

}  // namespace

TunReader::TunReader(const std::vector<int>& fds, TunDevice::Kind kind, bool hasHeader, PacketPool& pool)
    : kind_(kind),
      hasHeader_(hasHeader),
      stock_(pool),
      spill_(std::make_unique_for_overwrite<uint8_t[]>(pool.payload() + kLongest)) {
  for (int fd : fds) queues_.push_back({fd});
}

// nullptr: none.
TunReader::Queue* TunReader::nextReady() {
  for (size_t n = 0; n < queues_.size(); ++n) {
    last_ = last_ + 1 < queues_.size() ? last_ + 1 : 0;
    if (queues_[last_].isReady) return &queues_[last_];
  }
  return nullptr;
}

size_t TunReader::read(size_t limit, DeviceCounters& counters, const TunDevice::Sink& sink) {
  size_t packets = segments_ ? cut({}, counters, sink) : 0;
  auto mayGoOn = [&] { return packets < limit && !segments_ && !stock_.isUsedUp(); };
  size_t reads = 0;
  for (Queue* queue; reads < kMostReads && mayGoOn() && (queue = nextReady());) {
    for (size_t most = std::min(reads + kShare, kMostReads); reads < most && queue->isReady && mayGoOn();
         ++reads) {
      size_t some = readSome(*queue, counters, sink);
      queue->isReady = some > 0;
      packets += some;
    }
  }
  if (!isWatched_) {
    for (Queue& queue : queues_) queue.isReady = true;
  }
  return packets;
}

// Bytes behind the header; 0 or less: none.
ssize_t TunReader::readRaw(const Queue& queue, VirtioHeader& header, ByteSpan room, ByteSpan spill,
                           DeviceCounters& counters) {
  size_t before = hasHeader_ ? sizeof header : 0;
  iovec vectors[]{{&header, before}, {room.data(), room.size()}, {spill.data(), spill.size()}};
  ssize_t n;
  do n = ::readv(queue.fd, vectors, 3);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno != EAGAIN) ++counters.readErrors;
    gone_ |= errno == EBADFD;
    return n;
  }
  return n - static_cast<ssize_t>(before);
}

// Gives the packets of one read to the sink. How many there were, lost ones included; 0: nothing is to be read. What a
// packet buffer holds is read into it at once. More is TCP segments or UDP datagrams in one packet, which are cut out of a whole copy of
// it.
size_t TunReader::readSome(const Queue& queue, DeviceCounters& counters, const TunDevice::Sink& sink) {
  Packet packet = stock_.take();
  uint8_t* head = spill_.get();
  ByteSpan room(packet ? packet.data() : head, stock_.payload());
  VirtioHeader header{};
  ssize_t n = readRaw(queue, header, room, {head + room.size(), kLongest}, counters);
  if (n <= 0) return stock_.giveBack(std::move(packet)), 0;
  ++counters.reads;
  auto size = static_cast<size_t>(n);
  if (header.segmentType != VirtioHeader::kNoSegments) {
    if (packet) std::copy_n(room.data(), std::min(size, room.size()), head);
    if (begin(header, {head, size})) return cut(std::move(packet), counters, sink);
    ++counters.readErrors;
    stock_.giveBack(std::move(packet));
  } else if (!packet) {
    ++counters.readNoBuffer;
  } else if (size > room.size()) {
    ++counters.readTooBig;
    stock_.giveBack(std::move(packet));
  } else {
    packet.setSize(size);
    if (header.flags & VirtioHeader::kNeedsChecksum)
      completeChecksum(packet.span(), header.checksumStart, header.checksumOffset);
    give(std::move(packet), counters, sink);
  }
  return 1;
}

// False: it cannot be cut.
bool TunReader::begin(const VirtioHeader& header, ByteView packet) {
  size_t linkHeader = 0;
  if (kind_ == TunDevice::Kind::kTap) {
    std::optional<Frame> frame = parseFrame(packet);
    linkHeader = frame ? frame->payloadOffset : packet.size();
  }
  segments_ = PacketSegmenter::of(packet, linkHeader, header.segmentSize);
  return segments_.has_value();
}

// `first`: a buffer that is there already, for the first segment. How many segments there were.
size_t TunReader::cut(Packet first, DeviceCounters& counters, const TunDevice::Sink& sink) {
  size_t count = 0;
  for (size_t size; (size = segments_->nextSize()) > 0; ++count) {
    if (!first && stock_.isUsedUp()) return count;
    Packet segment = first ? std::exchange(first, Packet{}) : stock_.take();
    if (!segment || size > stock_.payload()) {
      ++(segment ? counters.readTooBig : counters.readNoBuffer);
      stock_.giveBack(std::move(segment));
      segments_->skip();
      continue;
    }
    segments_->write(segment.append(size));
    give(std::move(segment), counters, sink);
  }
  segments_.reset();
  return count;
}

}  // namespace braid
