#include "host/linux/tun_writer.h"

#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "host/linux/virtio_header.h"

namespace braid {

namespace {

iovec vectorOf(ByteView bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

void spend(Packet& packet, std::vector<Packet>* spent) {
  if (spent) {
    spent->push_back(std::move(packet));
  } else {
    packet.reset();
  }
}

// Counts what became of a write.
bool isTaken(ssize_t written, size_t packets, DeviceCounters& counters) {
  if (written >= 0) {
    ++counters.writes;
    counters.writtenPackets += packets;
    return true;
  }
  (errno == EAGAIN || errno == ENOBUFS ? counters.writeFull : counters.writeErrors) += packets;
  return false;
}

}  // namespace

TunWriter::TunWriter(std::vector<int> fds, size_t linkHeader, bool hasHeader, bool takesUdp)
    : fds_(std::move(fds)), hasHeader_(hasHeader), linkHeader_(linkHeader) {
  if (!hasHeader) return;
  runs_.reserve(kRuns);
  begun_.reserve(kRuns);
  for (size_t i = 0; i < kRuns; ++i) runs_.emplace_back(linkHeader_).run.setTakesUdp(takesUdp);
}

void TunWriter::write(Packet packet, DeviceCounters& counters, std::vector<Packet>* spent) {
  std::optional<uint32_t> number = runNumber(packet.view(), linkHeader_);
  int fd = fdOf(number);
  if (!hasHeader_ || !number) {
    if (mayBeOfSomeRun(packet.view(), linkHeader_)) flush(counters, spent);
    return writeAlone(std::move(packet), fd, counters, spent);
  }
  OpenRun& open = runOf(*number);
  if (open.number != number || open.run.count() == 0 || !open.run.extend(packet.view())) {
    if (open.run.count() > 0) {
      writeRun(open, counters, spent);
      std::erase(begun_, &open);
    }
    if (!open.run.begin(packet.view()))
      return writeAlone(std::move(packet), fd, counters, spent);  // it goes at once
    open.number = *number;
    open.fd = fd;
    begun_.push_back(&open);
  }
  open.packets[open.run.count() - 1] = std::move(packet);
}

// The run of that flow, else a free place of its two, else the first of them: what is in that must leave.
TunWriter::OpenRun& TunWriter::runOf(uint32_t number) {
  OpenRun& first = runs_[number % kRuns];
  OpenRun& second = runs_[number / kRuns % kRuns];
  auto has = [&](const OpenRun& open) { return open.run.count() > 0 && open.number == number; };
  if (has(first)) return first;
  if (has(second)) return second;
  return first.run.count() > 0 && second.run.count() == 0 ? second : first;
}

void TunWriter::flush(DeviceCounters& counters, std::vector<Packet>* spent) {
  for (OpenRun* open : begun_) writeRun(*open, counters, spent);
  begun_.clear();
}

void TunWriter::writeAlone(Packet packet, int fd, DeviceCounters& counters, std::vector<Packet>* spent) {
  VirtioHeader header{};
  iovec vectors[]{{&header, hasHeader_ ? sizeof header : 0}, vectorOf(packet.view())};
  ssize_t n;
  do n = ::writev(fd, vectors, 2);
  while (n < 0 && errno == EINTR);
  if (isTaken(n, 1, counters)) counters.writtenBytes += packet.size();
  spend(packet, spent);
}

void TunWriter::writeRun(OpenRun& open, DeviceCounters& counters, std::vector<Packet>* spent) {
  PacketRun& run = open.run;
  VirtioHeader header{};
  if (run.count() > 1) {
    RunOffload offload = run.finish(open.packets[0].span());
    header.flags = VirtioHeader::kNeedsChecksum;
    uint8_t ofTcp = offload.isV6 ? VirtioHeader::kTcpV6 : VirtioHeader::kTcpV4;
    header.segmentType = offload.isUdp ? VirtioHeader::kUdp : ofTcp;
    header.headers = offload.headers;
    header.segmentSize = offload.payload;
    header.checksumStart = offload.checksumStart;
    header.checksumOffset = offload.checksumOffset;
  }
  std::array<iovec, PacketRun::kMost + 1> vectors;
  vectors[0] = {&header, sizeof header};
  size_t bytes = 0;
  for (size_t i = 0; i < run.count(); ++i) {
    ByteView packet = open.packets[i].view();
    bytes += packet.size();
    vectors[i + 1] = vectorOf(i == 0 ? packet : packet.subspan(run.headers()));
  }
  ssize_t n;
  do n = ::writev(open.fd, vectors.data(), static_cast<int>(run.count() + 1));
  while (n < 0 && errno == EINTR);
  if (isTaken(n, run.count(), counters)) counters.writtenBytes += bytes;
  for (size_t i = 0; i < run.count(); ++i) spend(open.packets[i], spent);
  run.clear();
}

}  // namespace braid
