#include "host/linux/linux_tun_device.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "host/system.h"
#include "inet/frame.h"

namespace braid {

namespace {

void give(Packet packet, DeviceCounters& counters, const TunDevice::Sink& sink) {
  ++counters.readPackets;
  counters.readBytes += packet.size();
  sink(std::move(packet));
}

}  // namespace

TunReader::TunReader(const std::vector<int>& fds, TunDevice::Kind kind, bool hasHeader,
                     PacketPool& pool)
    : kind_(kind),
      hasHeader_(hasHeader),
      pool_(pool),
      spill_(std::make_unique_for_overwrite<uint8_t[]>(pool.payload() + kLongest)) {
  for (int fd : fds) queues_.push_back({fd});
}

// The next queue in turn that may have something to read; nullptr: none.
TunReader::Queue* TunReader::nextReady() {
  for (size_t n = 0; n < queues_.size(); ++n) {
    last_ = last_ + 1 < queues_.size() ? last_ + 1 : 0;
    if (queues_[last_].isReady) return &queues_[last_];
  }
  return nullptr;
}

size_t TunReader::read(size_t limit, DeviceCounters& counters, const TunDevice::Sink& sink) {
  size_t packets = 0, reads = 0;
  for (Queue* queue; reads < kMostReads && packets < limit && (queue = nextReady());) {
    for (size_t most = std::min(reads + kShare, kMostReads);
         reads < most && queue->isReady && packets < limit; ++reads) {
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

// Reads one packet. Returns the number of bytes after the header; 0 or less: nothing was read.
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

// Performs one read and gives its packets to the sink. Returns how many there were, including lost
// ones; 0: nothing to read. A packet that fits a packet buffer is read into it directly. Anything
// longer consists of TCP segments or UDP datagrams in one packet, which are cut out of a complete
// copy of it.
size_t TunReader::readSome(const Queue& queue, DeviceCounters& counters,
                           const TunDevice::Sink& sink) {
  Packet packet = pool_.allocate();
  uint8_t* head = spill_.get();
  ByteSpan room(packet ? packet.data() : head, pool_.payload());
  VirtioHeader header{};
  ssize_t n = readRaw(queue, header, room, {head + room.size(), kLongest}, counters);
  if (n <= 0) return 0;
  ++counters.reads;
  auto size = static_cast<size_t>(n);
  if (header.segmentType != VirtioHeader::kNoSegments) {
    if (packet) std::copy_n(room.data(), std::min(size, room.size()), head);
    if (auto segments = segmentsOf(header, {head, size}))
      return cut(*segments, std::move(packet), counters, sink);
    ++counters.readErrors;
  } else if (!packet) {
    ++counters.readNoBuffer;
  } else if (size > room.size()) {
    ++counters.readTooBig;
  } else {
    packet.setSize(size);
    if (header.flags & VirtioHeader::kNeedsChecksum)
      completeChecksum(packet.span(), header.checksumStart, header.checksumOffset);
    give(std::move(packet), counters, sink);
  }
  return 1;
}

// The segments of a packet; nullopt: it cannot be cut.
std::optional<PacketSegmenter> TunReader::segmentsOf(const VirtioHeader& header,
                                                     ByteView packet) const {
  size_t linkHeader = 0;
  if (kind_ == TunDevice::Kind::kTap) {
    std::optional<Frame> frame = parseFrame(packet);
    linkHeader = frame ? frame->payloadOffset : packet.size();
  }
  return PacketSegmenter::of(packet, linkHeader, header.segmentSize);
}

// Gives the segments to the sink. `first`: a buffer for the first segment, if there is one already.
// Returns the number of segments.
size_t TunReader::cut(PacketSegmenter segments, Packet first, DeviceCounters& counters,
                      const TunDevice::Sink& sink) {
  size_t count = 0;
  for (size_t size; (size = segments.nextSize()) > 0; ++count) {
    Packet segment = first ? std::exchange(first, Packet{}) : pool_.allocate();
    if (!segment || size > pool_.payload()) {
      ++(segment ? counters.readTooBig : counters.readNoBuffer);
      segments.skip();
      continue;
    }
    segments.write(segment.append(size));
    give(std::move(segment), counters, sink);
  }
  return count;
}

namespace {

iovec vectorOf(ByteView bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

// Counts the outcome of a write. True: the kernel took the packets.
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

void TunWriter::write(Packet packet, DeviceCounters& counters) {
  std::optional<uint32_t> number = runNumber(packet.view(), linkHeader_);
  int fd = fdOf(number);
  if (!hasHeader_ || !number) {
    if (mayBeOfSomeRun(packet.view(), linkHeader_)) flush(counters);
    writeAlone(packet, fd, counters);
    return;
  }
  OpenRun& open = runOf(*number);
  if (open.number != number || open.run.count() == 0 || !open.run.extend(packet.view())) {
    if (open.run.count() > 0) {
      writeRun(open, counters);
      std::erase(begun_, &open);
    }
    bool begins = open.run.begin(packet.view());
    if (!begins || isRefused(open.run)) {
      open.run.clear();
      writeAlone(packet, fd, counters);
      return;
    }
    open.number = *number;
    open.fd = fd;
    begun_.push_back(&open);
  }
  open.packets[open.run.count() - 1] = std::move(packet);
}

// The run of that flow; else a free one of the flow's two places; else the first place, whose run
// must be written first.
TunWriter::OpenRun& TunWriter::runOf(uint32_t number) {
  OpenRun& first = runs_[number % kRuns];
  OpenRun& second = runs_[number / kRuns % kRuns];
  auto has = [&](const OpenRun& open) { return open.run.count() > 0 && open.number == number; };
  if (has(first)) return first;
  if (has(second)) return second;
  return first.run.count() > 0 && second.run.count() == 0 ? second : first;
}

void TunWriter::flush(DeviceCounters& counters) {
  for (OpenRun* open : begun_) writeRun(*open, counters);
  begun_.clear();
}

bool TunWriter::writeAlone(const Packet& packet, int fd, DeviceCounters& counters) {
  VirtioHeader header{};
  iovec vectors[]{{&header, hasHeader_ ? sizeof header : 0}, vectorOf(packet.view())};
  ssize_t n;
  do n = ::writev(fd, vectors, 2);
  while (n < 0 && errno == EINTR);
  if (!isTaken(n, 1, counters)) return false;
  counters.writtenBytes += packet.size();
  return true;
}

// Writes the packets of a run that the device refused as a whole. If it takes all of them, it does
// not take such runs, which are not tried again.
void TunWriter::writeEach(const OpenRun& open, bool mayTryAgain, DeviceCounters& counters) {
  bool all = true;
  for (size_t i = 0; i < open.run.count(); ++i)
    all &= writeAlone(open.packets[i], open.fd, counters);
  if (!all) return;
  ++counters.refusedRuns;
  isRefused(open.run) = !mayTryAgain;
}

void TunWriter::writeRun(OpenRun& open, DeviceCounters& counters) {
  PacketRun& run = open.run;
  VirtioHeader header{};
  std::array<uint8_t, PacketRun::kMostHeaders> before;  // the first packet's headers
  if (run.count() > 1) {
    std::copy_n(open.packets[0].data(), run.headers(), before.begin());
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
  if (n < 0 && run.count() > 1 && errno != EAGAIN && errno != ENOBUFS) {
    bool mayTryAgain = errno == ENOMEM;
    std::copy_n(before.begin(), run.headers(), open.packets[0].data());
    writeEach(open, mayTryAgain, counters);
  } else if (isTaken(n, run.count(), counters)) {
    counters.writtenBytes += bytes;
  }
  for (size_t i = 0; i < run.count(); ++i) open.packets[i].reset();
  run.clear();
}

namespace {

constexpr const char* kTunPath = "/dev/net/tun";

std::string quoted(const std::string& name) {
  return "device '" + name + "'";
}

[[noreturn]] void failOpen(int error) {
  std::string what = std::string("cannot open ") + kTunPath + ": " + std::strerror(error);
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    what +=
        "; load the kernel module (modprobe tun) and, in a container, pass the device node through";
  } else if (error == EACCES || error == EPERM) {
    what += "; use root; a service must be allowed to use it (DeviceAllow=/dev/net/tun rw)";
  }
  throw SystemError(error, what);
}

[[noreturn]] void failAttach(int error, TunDevice::Kind kind, const std::string& name) {
  const char* wanted = kind == TunDevice::Kind::kTun ? "TUN" : "TAP";
  std::string what = std::string("cannot create ") + wanted + " " + quoted(name) + ": ";
  switch (error) {
    case EPERM:
      what += std::string(kNetAdminRemedy);
      break;
    case EBUSY:
      what +=
          "the name is taken by a device that another process uses; stop it or choose another name";
      break;
    case EINVAL:
      what += std::string("the name is taken by an interface that is not a ") + wanted +
              " device of the same settings, or by a device that another process uses, or is no "
              "interface name; "
              "choose another name";
      break;
    default:
      what += std::strerror(error);
  }
  throw SystemError(error, what);
}

constexpr size_t kEthernetHeader = 14;

bool attach(int fd, ifreq& request, TunDevice::Kind kind, int flags) {
  request.ifr_flags =
      static_cast<short>((kind == TunDevice::Kind::kTun ? IFF_TUN : IFF_TAP) | IFF_NO_PI | flags);
  return ::ioctl(fd, TUNSETIFF, &request) == 0;
}

// From Linux 6.2 on; not in the headers of Debian 12.
constexpr unsigned kUdpSegments = 0x20 | 0x40;  // TUN_F_USO4, TUN_F_USO6

// Tells the kernel that it may pass on packets that a network card would have to segment and
// checksum. True when it will do so for UDP, too. If it refuses even for TCP, each packet is passed
// on whole, after an empty header.
bool wantSegments(int fd) {
  constexpr unsigned kTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  int size = sizeof(VirtioHeader);
  if (::ioctl(fd, TUNSETVNETHDRSZ, &size) != 0) return false;
  if (::ioctl(fd, TUNSETOFFLOAD, kTcp | kUdpSegments) == 0) return true;
  ::ioctl(fd, TUNSETOFFLOAD, kTcp);
  return false;
}

}  // namespace

LinuxTunDevice::LinuxTunDevice(const DeviceOptions& options) : kind_(options.kind) {
  const std::string& name = options.name;
  if (name.empty() || name.size() >= IFNAMSIZ) {
    throw SystemError(EINVAL, quoted(name) + ": an interface name has 1 to 15 bytes");
  }
  name_ = name;
  hasHeader_ = options.offloads && create(IFF_VNET_HDR, options.queues);
  if (!hasHeader_ && !create(0, options.queues)) failAttach(errno, kind_, name);
  bool takesUdp = hasHeader_ && wantSegments(fd());
  if (!hasHeader_)
    ::ioctl(fd(), TUNSETOFFLOAD, 0);  // a persistent device keeps its last owner's offloads
  writer_.emplace(rawFds(), kind_ == Kind::kTap ? kEthernetHeader : 0, hasHeader_, takesUdp);
  lengthenQueues();
}

// Opens the device and its queues. A device with several queues must be a new one (IFF_TUN_EXCL):
// otherwise this process might become an additional queue of another owner's device.
bool LinuxTunDevice::create(int flags, unsigned queues) {
  fds_.clear();
  for (unsigned wanted = queues; fds_.size() < wanted;) {
    UniqueFd fd(::open(kTunPath, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd && fds_.empty()) failOpen(errno);
    ifreq request{};
    name_.copy(request.ifr_name, IFNAMSIZ - 1);
    int several = wanted == 1 ? 0 : fds_.empty() ? IFF_MULTI_QUEUE | IFF_TUN_EXCL : IFF_MULTI_QUEUE;
    if (fd && attach(fd.get(), request, kind_, flags | several)) {
      name_ = request.ifr_name;
      fds_.push_back(std::move(fd));
    } else if (wanted > 1 && fds_.empty()) {
      wanted = 1;
    } else {
      break;
    }
  }
  return !fds_.empty();
}

std::vector<int> LinuxTunDevice::rawFds() const {
  std::vector<int> out;
  for (const UniqueFd& fd : fds_) out.push_back(fd.get());
  return out;
}

// Sets the length of the kernel queues. Best effort: an unprivileged owner of a prepared device may
// not change it, and keeps the kernel's 500 packets.
void LinuxTunDevice::lengthenQueues() {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name_.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_qlen = kKernelQueue;
  if (control) ::ioctl(control.get(), SIOCSIFTXQLEN, &request);
}

void LinuxTunDevice::watch(Loop& loop, IoWatcher::Callback onReadable) {
  onReadable_ = std::move(onReadable);
  for (size_t i = 0; i < fds_.size(); ++i) {
    watchers_.push_back(std::make_unique<IoWatcher>(loop, fds_[i].get(), [this, i] {
      if (reader_) reader_->setReady(i);
      onReadable_();
    }));
  }
}

size_t LinuxTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  if (!reader_) {
    reader_.emplace(rawFds(), kind_, hasHeader_, pool);
    if (!watchers_.empty()) reader_->setWatched();
  }
  size_t packets = reader_->read(limit, counters_, sink);
  gone_ |= reader_->gone();
  return packets;
}

}  // namespace braid
