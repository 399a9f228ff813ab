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

#include "host/system_error.h"
#include "inet/frame.h"
#include "inet/packet_segmenter.h"

namespace braid {

namespace {

constexpr const char* kTunPath = "/dev/net/tun";

std::string quoted(const std::string& name) {
  return "device '" + name + "'";
}

[[noreturn]] void failOpen(int error) {
  std::string what = std::string("cannot open ") + kTunPath + ": " + std::strerror(error);
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    what += "; load the kernel module (modprobe tun) and, in a container, pass the device node through";
  } else if (error == EACCES || error == EPERM) {
    what += "; the service must be allowed to use it (DeviceAllow=/dev/net/tun rw)";
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
      what += "the name is taken by a device that another process uses; stop it or choose another name";
      break;
    case EINVAL:
      what +=
          std::string("the name is taken by an interface that is not a ") + wanted +
          " device of the same settings, or by a device that another process uses, or is no interface name; "
          "choose another name";
      break;
    default:
      what += std::strerror(error);
  }
  throw SystemError(error, what);
}

constexpr size_t kEthernetHeader = 14;
// The longest packet of an IP stack without jumbograms, and what goes before it.
constexpr size_t kLongest = 65535 + kEthernetHeader + 4;

bool attach(int fd, ifreq& request, TunDevice::Kind kind, int flags) {
  request.ifr_flags =
      static_cast<short>((kind == TunDevice::Kind::kTun ? IFF_TUN : IFF_TAP) | IFF_NO_PI | flags);
  return ::ioctl(fd, TUNSETIFF, &request) == 0;
}

// Of Linux 6.2, whose headers are newer than those of Debian 12.
constexpr unsigned kUdpSegments = 0x20 | 0x40;  // TUN_F_USO4, TUN_F_USO6

// Lets the kernel hand over what a network card would cut and sum up. True when it does so with UDP, too. Where it
// refuses even TCP, packets come whole, each behind an empty header.
bool wantSegments(int fd) {
  constexpr unsigned kTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  int size = sizeof(VirtioHeader);
  if (::ioctl(fd, TUNSETVNETHDRSZ, &size) != 0) return false;
  if (::ioctl(fd, TUNSETOFFLOAD, kTcp | kUdpSegments) == 0) return true;
  ::ioctl(fd, TUNSETOFFLOAD, kTcp);
  return false;
}

iovec vectorOf(ByteView bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

LinuxTunDevice::LinuxTunDevice(const DeviceOptions& options)
    : kind_(options.kind), linkHeader_(options.kind == Kind::kTap ? kEthernetHeader : 0) {
  const std::string& name = options.name;
  if (name.empty() || name.size() >= IFNAMSIZ) {
    throw SystemError(EINVAL, quoted(name) + ": an interface name has 1 to 15 bytes");
  }
  name_ = name;
  hasHeader_ = options.offloads && create(IFF_VNET_HDR, options.queues);
  if (!hasHeader_ && !create(0, options.queues)) failAttach(errno, kind_, name);
  if (hasHeader_) {
    bool takesUdp = wantSegments(fd());
    runs_.reserve(kRuns);
    begun_.reserve(kRuns);
    for (size_t i = 0; i < kRuns; ++i) runs_.emplace_back(linkHeader_).run.setTakesUdp(takesUdp);
  } else {
    ::ioctl(fd(), TUNSETOFFLOAD, 0);  // a persistent device keeps what its owner before wanted
  }
  lengthenQueues();
}

// A device with several queues must be a new one: into a present one we would come as another owner's further queue.
bool LinuxTunDevice::create(int flags, unsigned queues) {
  queues_.clear();
  for (unsigned wanted = queues; queues_.size() < wanted;) {
    UniqueFd fd(::open(kTunPath, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd && queues_.empty()) failOpen(errno);
    ifreq request{};
    name_.copy(request.ifr_name, IFNAMSIZ - 1);
    int several = wanted == 1 ? 0 : queues_.empty() ? IFF_MULTI_QUEUE | IFF_TUN_EXCL : IFF_MULTI_QUEUE;
    if (fd && attach(fd.get(), request, kind_, flags | several)) {
      name_ = request.ifr_name;
      queues_.push_back({std::move(fd)});
    } else if (wanted > 1 && queues_.empty()) {
      wanted = 1;
    } else {
      break;
    }
  }
  return !queues_.empty();
}

// Best effort: an unprivileged owner of a prepared device may not do so, and then has the kernel's 500 packets.
void LinuxTunDevice::lengthenQueues() {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name_.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_qlen = kKernelQueue;
  if (control) ::ioctl(control.get(), SIOCSIFTXQLEN, &request);
}

void LinuxTunDevice::watch(Loop& loop, IoWatcher::Callback onReadable) {
  for (Queue& queue : queues_) {
    auto ready = [&queue, onReadable] {
      queue.isReady = true;
      onReadable();
    };
    queue.watcher = std::make_unique<IoWatcher>(loop, queue.fd.get(), ready);
    queue.isReady = false;
  }
}

// nullptr: none.
LinuxTunDevice::Queue* LinuxTunDevice::nextReady() {
  for (size_t n = 0; n < queues_.size(); ++n) {
    last_ = last_ + 1 < queues_.size() ? last_ + 1 : 0;
    if (queues_[last_].isReady) return &queues_[last_];
  }
  return nullptr;
}

size_t LinuxTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  size_t packets = 0;
  for (Queue* queue; packets < limit && (queue = nextReady());) {
    size_t most = std::min(limit, packets + kShare);
    while (packets < most && queue->isReady) {
      size_t some = readSome(*queue, pool, sink);
      queue->isReady = some > 0;
      packets += some;
    }
  }
  if (!queues_[0].watcher) {
    for (Queue& queue : queues_) queue.isReady = true;
  }
  return packets;
}

// Bytes behind the header; 0 or less: none.
ssize_t LinuxTunDevice::readRaw(const Queue& queue, VirtioHeader& header, ByteSpan room, ByteSpan spill) {
  size_t before = hasHeader_ ? sizeof header : 0;
  iovec vectors[]{{&header, before}, {room.data(), room.size()}, {spill.data(), spill.size()}};
  ssize_t n;
  do n = ::readv(queue.fd.get(), vectors, 3);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno != EAGAIN) ++counters_.readErrors;
    gone_ |= errno == EBADFD;
    return n;
  }
  return n - static_cast<ssize_t>(before);
}

// What a packet buffer holds is read into it at once. More is TCP segments in one packet, which are cut out of a whole
// copy of it.
size_t LinuxTunDevice::readSome(const Queue& queue, PacketPool& pool, const Sink& sink) {
  if (!spill_) spill_ = std::make_unique_for_overwrite<uint8_t[]>(pool.payload() + kLongest);
  Packet packet = pool.allocate();
  uint8_t* head = spill_.get();
  ByteSpan room(packet ? packet.data() : head, pool.payload());
  VirtioHeader header{};
  ssize_t n = readRaw(queue, header, room, {head + room.size(), kLongest});
  if (n <= 0) return 0;
  ++counters_.reads;
  auto size = static_cast<size_t>(n);
  if (header.segmentType != VirtioHeader::kNoSegments) {
    if (packet) std::copy_n(room.data(), std::min(size, room.size()), head);
    return cut(header, {head, size}, std::move(packet), pool, sink);
  }
  if (!packet) {
    ++counters_.readNoBuffer;
  } else if (size > room.size()) {
    ++counters_.readTooBig;
  } else {
    packet.setSize(size);
    if (header.flags & VirtioHeader::kNeedsChecksum)
      completeChecksum(packet.span(), header.checksumStart, header.checksumOffset);
    give(std::move(packet), sink);
  }
  return 1;
}

void LinuxTunDevice::give(Packet packet, const Sink& sink) {
  ++counters_.readPackets;
  counters_.readBytes += packet.size();
  sink(std::move(packet));
}

// `first`: a buffer that is there already, for the first segment. How many segments there were.
size_t LinuxTunDevice::cut(const VirtioHeader& header, ByteView packet, Packet first, PacketPool& pool,
                           const Sink& sink) {
  size_t linkHeader = 0;
  if (kind_ == Kind::kTap) {
    std::optional<Frame> frame = parseFrame(packet);
    linkHeader = frame ? frame->payloadOffset : packet.size();
  }
  std::optional<PacketSegmenter> segments = PacketSegmenter::of(packet, linkHeader, header.segmentSize);
  if (!segments) {
    ++counters_.readErrors;
    return 1;
  }
  for (size_t size; (size = segments->nextSize()) > 0;) {
    Packet segment = first ? std::exchange(first, Packet{}) : pool.allocate();
    if (!segment || size > pool.payload()) {
      ++(segment ? counters_.readTooBig : counters_.readNoBuffer);
      segments->skip();
      continue;
    }
    segments->write(segment.append(size));
    give(std::move(segment), sink);
  }
  return segments->count();
}

// Counts what became of a write.
bool LinuxTunDevice::isTaken(ssize_t written, size_t packets) {
  if (written >= 0) {
    ++counters_.writes;
    counters_.writtenPackets += packets;
    return true;
  }
  (errno == EAGAIN || errno == ENOBUFS ? counters_.writeFull : counters_.writeErrors) += packets;
  return false;
}

void LinuxTunDevice::write(Packet packet) {
  std::optional<uint32_t> number = runNumber(packet.view(), linkHeader_);
  if (!hasHeader_ || !number) {
    flush();
    return writeAlone(packet, number.value_or(0) % kRuns);
  }
  OpenRun& open = runs_[*number % kRuns];
  if (open.run.count() == 0 || !open.run.extend(packet.view())) {
    if (open.run.count() > 0) {
      writeRun(open);
      std::erase(begun_, &open);
    }
    if (!open.run.begin(packet.view())) return writeAlone(packet, *number % kRuns);  // it goes at once
    begun_.push_back(&open);
  }
  open.packets[open.run.count() - 1] = std::move(packet);
}

void LinuxTunDevice::flush() {
  for (OpenRun* open : begun_) writeRun(*open);
  begun_.clear();
}

void LinuxTunDevice::writeAlone(const Packet& packet, size_t slot) {
  VirtioHeader header{};
  iovec vectors[]{{&header, hasHeader_ ? sizeof header : 0}, vectorOf(packet.view())};
  ssize_t n;
  do n = ::writev(fdOf(slot), vectors, 2);
  while (n < 0 && errno == EINTR);
  if (isTaken(n, 1)) counters_.writtenBytes += packet.size();
}

void LinuxTunDevice::writeRun(OpenRun& open) {
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
  do
    n = ::writev(fdOf(static_cast<size_t>(&open - runs_.data())), vectors.data(),
                 static_cast<int>(run.count() + 1));
  while (n < 0 && errno == EINTR);
  if (isTaken(n, run.count())) counters_.writtenBytes += bytes;
  for (size_t i = 0; i < run.count(); ++i) open.packets[i].reset();
  run.clear();
}

}  // namespace braid
