#include "host/linux/linux_tun_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "host/system.h"
#include "tests/unit/inet/packets.h"

namespace braid::tun_writer_test {
namespace {

using test::Bytes;

/// A device with one queue that receives each write as a datagram.
struct TunWriterTest : testing::Test {
  TunWriterTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
    written = UniqueFd(ends[0]);
    device = UniqueFd(ends[1]);
    writer.emplace(std::vector<int>{ends[1]}, 0, true, true);
  }

  /// Segment number `at` of a flow, 100 bytes.
  static Bytes segment(uint16_t port, uint32_t at) {
    Bytes payload(100, static_cast<uint8_t>(at));
    return test::tcpV6(
        {.sport = port, .seq = 1 + at * 100, .flags = TcpFields::kAck, .payload = payload});
  }
  static uint32_t number(uint16_t port) { return *runNumber(segment(port, 0), 0); }
  void write(const Bytes& packet) {
    writer->write(pool.copy(packet), counters);
    receive();
  }
  void receive() {
    while (receiveOne(MSG_DONTWAIT)) {
    }
  }
  bool receiveOne(int flags) {
    uint8_t buffer[70000];
    ssize_t n = ::recv(written.get(), buffer, sizeof buffer, flags);
    if (n <= 0) return false;
    if (first.empty()) first.assign(buffer, buffer + n);
    ByteView packet(buffer + sizeof(VirtioHeader), static_cast<size_t>(n) - sizeof(VirtioHeader));
    bool isTcp = packet[0] >> 4 == 6;
    ByteView payload = isTcp ? packet.subspan(ip::kV6Header + ip::kTcpHeader) : ByteView();
    writes.push_back(payload.size());
    if (isTcp)
      test::append(came[load16(packet.data() + ip::kV6Header)], {payload.begin(), payload.end()});
    return true;
  }
  /// Writes segments `from` to `until` - 1 of a flow to a device that takes only writes below 4.5
  /// KB, and waits for room for each.
  void writeToSmall(uint32_t from, uint32_t until) {
    int small = 0;  // the kernel makes it 4608, its least
    ASSERT_EQ(::setsockopt(device.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    for (int fd : {device.get(), written.get()}) ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
    timeval limit{5, 0};
    ASSERT_EQ(::setsockopt(written.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    std::thread reader([&] {
      for (uint32_t i = from; i < until && receiveOne(0); ++i) {
      }
    });
    for (uint32_t i = from; i < until; ++i) writer->write(pool.copy(segment(1000, i)), counters);
    writer->flush(counters);
    reader.join();
  }
  /// TCP payload of each write, in bytes; 0: another packet.
  std::vector<size_t> takeWrites() {
    writer->flush(counters);
    receive();
    return std::exchange(writes, {});
  }

  PacketPool pool{2048, 512};
  DeviceCounters counters;
  UniqueFd written, device;
  std::optional<TunWriter> writer;
  Bytes first;  ///< the first write
  std::vector<size_t> writes;
  std::map<uint16_t, Bytes> came;  ///< payload of each flow by its port, as it was written
};

// Found by review: each packet without ports ended the packet runs of all flows.
TEST_F(TunWriterTest, PacketsOfAnotherProtocolDoNotEndARun) {
  for (uint32_t i = 0; i < 3; ++i) {
    write(segment(1000, i));
    write(test::v4({.protocol = ip::kEsp}, Bytes(60)));
  }
  EXPECT_EQ(takeWrites(), (std::vector<size_t>{0, 0, 0, 300}));
}

TEST_F(TunWriterTest, AFragmentIsBehindAllThatCameBefore) {
  write(segment(1000, 0));
  write(segment(1000, 1));
  write(test::v4({.fragment = 100}, Bytes(60)));
  write(segment(1000, 2));
  EXPECT_EQ(takeWrites(), (std::vector<size_t>{200, 0, 100}));
}

// Found by review: two flows with the same table place ended each other's run with each packet.
TEST_F(TunWriterTest, TwoFlowsOfOnePlaceHaveARunEach) {
  uint16_t other = 1001;
  while (number(other) % 32 != number(1000) % 32 || number(other) / 32 % 32 == number(1000) % 32)
    ++other;
  for (uint32_t i = 0; i < 4; ++i) {
    write(segment(1000, i));
    write(segment(other, i));
  }
  EXPECT_EQ(takeWrites(), (std::vector<size_t>{400, 400}));
}

// Three flows share two table places: nothing is lost, and each flow's bytes stay in order.
TEST_F(TunWriterTest, WhereBothPlacesAreTakenTheFirstOneLeaves) {
  std::vector<uint16_t> ports;
  uint32_t places = number(1000) % 1024;
  for (uint32_t port = 1000; ports.size() < 3 && port < 65536; ++port) {
    if (number(static_cast<uint16_t>(port)) % 1024 == places)
      ports.push_back(static_cast<uint16_t>(port));
  }
  ASSERT_EQ(ports.size(), 3u);
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint16_t port : ports) write(segment(port, i));
  }
  takeWrites();
  Bytes all;
  for (uint8_t i = 0; i < 4; ++i) all.insert(all.end(), 100, i);
  for (uint16_t port : ports) EXPECT_EQ(came[port], all) << port;
  EXPECT_EQ(counters.writtenPackets, 12u);
}

TEST_F(TunWriterTest, ARunThatTheDeviceRefusesIsWrittenPacketByPacketAndNotTriedAgain) {
  Bytes all;
  for (uint32_t i = 0; i < 60; ++i) all.insert(all.end(), 100, static_cast<uint8_t>(i));
  writeToSmall(0, 60);
  EXPECT_EQ(std::exchange(writes, {}), std::vector<size_t>(60, 100));
  EXPECT_EQ(came[1000], all) << "nothing is lost";
  EXPECT_EQ(counters.refusedRuns, 1u);
  EXPECT_EQ(counters.writtenPackets, 60u);
  EXPECT_EQ(counters.writeErrors + counters.writeFull, 0u);
  writeToSmall(60, 120);
  EXPECT_EQ(writes, std::vector<size_t>(60, 100));
  EXPECT_EQ(counters.refusedRuns, 1u);
}

TEST_F(TunWriterTest, TheHeadersOfARefusedRunAreAsTheyWere) {
  writeToSmall(0, 60);
  ASSERT_EQ(counters.refusedRuns, 1u);
  const Bytes packet = segment(1000, 0);
  ASSERT_EQ(first.size(), sizeof(VirtioHeader) + packet.size());
  EXPECT_EQ(Bytes(first.begin() + sizeof(VirtioHeader), first.end()), packet);
  EXPECT_EQ(first[1], VirtioHeader::kNoSegments);
}

// A device that is down refuses everything: that says nothing about runs.
TEST_F(TunWriterTest, ADeviceThatTakesNothingIsAskedForRunsAgain) {
  written = UniqueFd();  // ECONNREFUSED
  for (uint32_t i = 0; i < 3; ++i) writer->write(pool.copy(segment(1000, i)), counters);
  writer->flush(counters);
  EXPECT_EQ(counters.writeErrors, 3u);
  EXPECT_EQ(counters.refusedRuns, 0u);
}

}  // namespace
}  // namespace braid::tun_writer_test
