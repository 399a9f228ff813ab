// The daemon's interfaces to the operating system, tested against a real kernel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "gateway/uplinks/uplink.h"
#include "host/linux/linux_host.h"
#include "host/linux/linux_tun_device.h"
#include "host/linux/loop.h"
#include "host/linux/netlink_config.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/nft_filter.h"
#include "host/linux/process.h"
#include "host/linux/udp_socket.h"
#include "host/system.h"
#include "tests/e2e/net_namespace.h"
#include "tests/older_kernel.h"

namespace braid {
namespace {

using testing::_;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using Family = Address::Family;
using Kind = TunDevice::Kind;

Address address(const std::string& text) {
  return *Address::parse(text);
}

class MockObserver : public SendObserver {
 public:
  MOCK_METHOD(void, onSendError, (const Datagram&, int), (override));
  MOCK_METHOD(void, onTooBig, (const Datagram&), (override));
};

template <typename F>
std::string errorOf(F&& f) {
  try {
    f();
  } catch (const SystemError& e) {
    return e.what();
  }
  return "no error";
}

/// Tests of limits in milliseconds have this many attempts, because another program may have the
/// CPU. One attempt must succeed.
constexpr int kAttempts = 3;

bool readable(int fd, int ms = 2000) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, ms) == 1;
}

// ---------------------------------------------------------------- UDP

//   own namespace            other namespace
//   near 192.0.2.1 ---------- far 192.0.2.2
class UdpWire : public NetNamespaceTest {
 protected:
  void SetUp() override {
    NetNamespaceTest::SetUp();
    if (HasFatalFailure()) return;
    joinNamespaces();
  }
  static SocketOptions any(bool v4, const std::string& interface = "") {
    SocketOptions o;
    o.local = address(v4 ? "0.0.0.0" : "::");
    o.interface = interface;
    return o;
  }
  Datagram datagram(const Endpoint& to, size_t size, Ecn ecn = Ecn::kNotEct) {
    Datagram d;
    d.route = {1, {}, to};
    d.ecn = ecn;
    d.bytes = pool_.copy(std::vector<uint8_t>(size, 0x5a));
    return d;
  }
  std::vector<ReceivedDatagram> receive(UdpSocket& s, size_t count) {
    std::vector<ReceivedDatagram> out;
    bool more = true;
    while (out.size() < count && (more || readable(s.fd()))) {
      for (ReceivedDatagram& r : s.receive(batch_, 64, more)) out.push_back(std::move(r));
    }
    return out;
  }
  PacketPool pool_{9000, 1024};
  ReceiveBatch batch_{pool_};
  testing::StrictMock<MockObserver> observer_;
};

// A sequence of sizes and ECN marks as in a tunnel: several full datagrams, a short one, another
// mark, another size.
TEST_F(UdpWire, RunsOfDatagramsCrossTogetherAndApart) {
  for (bool v4 : {true, false}) {
    for (bool sender : {true, false}) {
      for (bool receiver : {true, false}) {
        SCOPED_TRACE(testing::Message()
                     << "v4 " << v4 << ", sender " << sender << ", receiver " << receiver);
        SocketOptions from = any(v4, "near"), to = any(v4);
        from.offloads = sender;
        to.offloads = receiver;
        UdpSocket near(1, from);
        UdpSocket far = inOther([&] { return UdpSocket(2, to); });
        Endpoint end{address(v4 ? "192.0.2.2" : "2001:db8::2"), far.local().port};
        std::vector<std::pair<size_t, Ecn>> sent;
        for (int round = 0; round < 3; ++round) {
          for (int i = 0; i < 40; ++i) sent.emplace_back(1400, Ecn::kEct0);
          sent.emplace_back(700, Ecn::kEct0);
          for (int i = 0; i < 5; ++i) sent.emplace_back(1400, Ecn::kNotEct);
          for (int i = 0; i < 5; ++i) sent.emplace_back(60 + i, Ecn::kCe);
        }
        for (size_t i = 0; i < sent.size(); ++i) {
          Datagram d = datagram(end, sent[i].first, sent[i].second);
          d.bytes.data()[0] = static_cast<uint8_t>(i);
          d.bytes.data()[sent[i].first - 1] = static_cast<uint8_t>(i + 1);
          ASSERT_TRUE(near.enqueue(std::move(d)));
        }
        EXPECT_TRUE(near.flush(observer_));
        auto got = receive(far, sent.size());
        ASSERT_EQ(got.size(), sent.size());
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i].bytes.size(), sent[i].first) << i;
          EXPECT_EQ(got[i].ecn, sent[i].second) << i;
          EXPECT_EQ(got[i].bytes.data()[0], static_cast<uint8_t>(i));
          EXPECT_EQ(got[i].bytes.data()[sent[i].first - 1], static_cast<uint8_t>(i + 1));
        }
        EXPECT_EQ(near.counters().sentDatagrams, sent.size());
        EXPECT_EQ(far.counters().receivedDatagrams, sent.size());
      }
    }
  }
}

// Found by review: of datagrams that the kernel does not merge, a turn received only 32, since each
// read counted as 64.
TEST_F(UdpWire, ATurnTakesAsManyDatagramsWhetherTheKernelMergesThemOrNot) {
  Loop loop;
  LinuxHost host(loop);
  size_t got = 0;
  inOther([&] {
    SocketTable table(host, pool_, true, observer_, [&](std::span<ReceivedDatagram> batch) {
      got += batch.size();
      return batch.size();
    });
    SocketOptions options = any(true);
    options.bufferBytes = 4 << 20;
    table.open(2, options);
    UdpSocket from(1, any(true));
    constexpr size_t kAll = 200;
    for (size_t i = 0; i < kAll; ++i)
      from.enqueue(datagram({address("127.0.0.1"), table.find(2)->local().port}, 100 + i % 7));
    from.flush(observer_);
    ASSERT_EQ(from.counters().sentDatagrams, kAll);
    loop.runOnce(false);
    EXPECT_EQ(got, kAll);
  });
}

TEST_F(UdpWire, WithoutTheKernelsHelpDatagramsCrossOneByOne) {
  auto sentByKernel = [] {
    return std::stoul(shell("grep ^Udp: /proc/net/snmp | tail -n 1 | cut -d ' ' -f 5"));
  };
  SocketOptions from = any(true, "near"), to = any(true);
  from.offloads = to.offloads = true;
  std::unique_ptr<UdpSocket> near;
  onOlderKernel(
      {{__NR_getsockopt, 2, UDP_SEGMENT, ENOPROTOOPT}, {__NR_setsockopt, 2, UDP_GRO, ENOPROTOOPT}},
      [&] { near = std::make_unique<UdpSocket>(1, from); });
  ASSERT_TRUE(near);
  UdpSocket far = inOther([&] { return UdpSocket(2, to); });
  Endpoint end{address("192.0.2.2"), far.local().port};
  size_t before = sentByKernel();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(near->enqueue(datagram(end, 1400)));
  EXPECT_TRUE(near->flush(observer_));
  EXPECT_GE(sentByKernel(), before + 100) << "each a message of its own";
  auto got = receive(far, 100);
  ASSERT_EQ(got.size(), 100u);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(far.enqueue(datagram(got[0].from.remote, 1400)));
  EXPECT_TRUE(far.flush(observer_));
  EXPECT_EQ(receive(*near, 100).size(), 100u) << "sent together, received apart";
}

// A datagram that is too large among others is refused, and only that one.
TEST_F(UdpWire, AProbeThatIsTooLargeDoesNotTakeOthersWithIt) {
  SocketOptions from = any(true, "near");
  from.offloads = true;
  UdpSocket near(1, from);
  UdpSocket far = inOther([&] { return UdpSocket(2, any(true)); });
  Endpoint end{address("192.0.2.2"), far.local().port};
  for (size_t size : {1400, 1400, 1500, 1400, 1400}) ASSERT_TRUE(near.enqueue(datagram(end, size)));
  EXPECT_CALL(observer_, onTooBig(testing::_)).Times(1);
  EXPECT_TRUE(near.flush(observer_));
  EXPECT_EQ(receive(far, 4).size(), 4u);
  EXPECT_EQ(near.counters().tooBig, 1u);
}

TEST_F(UdpWire, EcnBitsAndAddressesCrossTheWireInBatches) {
  for (bool v4 : {true, false}) {
    UdpSocket near(1, any(v4, "near"));
    UdpSocket far = inOther([&] { return UdpSocket(2, any(v4)); });
    Endpoint to{address(v4 ? "192.0.2.2" : "2001:db8::2"), far.local().port};
    for (int i = 0; i < 150; ++i)
      ASSERT_TRUE(near.enqueue(datagram(to, 100, static_cast<Ecn>(i % 4))));
    EXPECT_TRUE(near.flush(observer_));
    auto got = receive(far, 150);
    ASSERT_EQ(got.size(), 150u);
    for (int i = 0; i < 150; ++i) EXPECT_EQ(got[i].ecn, static_cast<Ecn>(i % 4));
    EXPECT_EQ(got[0].from.local, to.address);
    EXPECT_EQ(got[0].from.remote.address, address(v4 ? "192.0.2.1" : "2001:db8::1"));

    Datagram back = datagram(got[0].from.remote, 10, Ecn::kCe);
    back.route.local = got[0].from.local;
    far.enqueue(std::move(back));
    EXPECT_TRUE(far.flush(observer_));
    auto answer = receive(near, 1);
    ASSERT_EQ(answer.size(), 1u);
    EXPECT_EQ(answer[0].ecn, Ecn::kCe);
    EXPECT_EQ(answer[0].from.remote, to);
  }
}

TEST_F(UdpWire, DatagramAboveTheInterfacesMtuIsReportedWithItsSizeAndTheRestGoesOut) {
  for (bool v4 : {true, false}) {
    size_t most = v4 ? 1500 - 20 - 8 : 1500 - 40 - 8;
    UdpSocket near(1, any(v4, "near"));
    UdpSocket far = inOther([&] { return UdpSocket(2, any(v4)); });
    Endpoint to{address(v4 ? "192.0.2.2" : "2001:db8::2"), far.local().port};
    near.enqueue(datagram(to, 100));
    near.enqueue(datagram(to, most + 1));
    near.enqueue(datagram(to, most));
    EXPECT_CALL(observer_, onTooBig(_)).WillOnce([&](const Datagram& d) {
      EXPECT_EQ(d.bytes.size(), most + 1);
    });
    EXPECT_TRUE(near.flush(observer_));
    auto got = receive(far, 2);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[1].bytes.size(), most);
    EXPECT_EQ(near.counters().tooBig, 1u);
  }
}

TEST_F(UdpWire, WhatTheKernelBelievesOfThePathMtuIsIgnored) {
  ip("route replace 192.0.2.2/32 dev near mtu 1000");
  UdpSocket near(1, any(true, "near"));
  UdpSocket far = inOther([&] { return UdpSocket(2, any(true)); });
  near.enqueue(datagram({address("192.0.2.2"), far.local().port}, 1400));
  EXPECT_TRUE(near.flush(observer_));
  EXPECT_EQ(receive(far, 1).size(), 1u);
}

TEST_F(UdpWire, NoRouteLinkOffAndLinkGoneAreSendErrors) {
  UdpSocket near(1, any(false, "near"));
  Endpoint nowhere{address("2001:db8:9::1"), 9};
  near.enqueue(datagram(nowhere, 10));
  EXPECT_CALL(observer_, onSendError(_, ENETUNREACH));
  EXPECT_TRUE(near.flush(observer_));

  UdpSocket near4(2, any(true, "near"));
  ip("link set near down");
  near4.enqueue(datagram({address("192.0.2.2"), 9}, 10));
  EXPECT_CALL(observer_, onSendError(_, AnyOf(ENETUNREACH, ENETDOWN, ENODEV)));
  EXPECT_TRUE(near4.flush(observer_));

  ip("link del near");
  near4.enqueue(datagram({address("192.0.2.2"), 9}, 10));
  EXPECT_CALL(observer_, onSendError(_, AnyOf(ENODEV, ENETUNREACH)));
  EXPECT_TRUE(near4.flush(observer_));
  EXPECT_EQ(near4.counters().sendErrors, 2u);
}

TEST_F(UdpWire, FilteredDatagramsAreSendErrors) {
  ip("route add prohibit 198.51.100.0/24");
  UdpSocket s(1, any(true));
  s.enqueue(datagram({address("198.51.100.1"), 9}, 10));
  EXPECT_CALL(observer_, onSendError(_, EACCES));
  EXPECT_TRUE(s.flush(observer_));
}

TEST_F(UdpWire, BoundSocketUsesItsInterfaceWhateverTheRoutesPrefer) {
  ip("link add also type veth peer name alsofar");
  ip("link set also up");
  ip("addr add 192.0.2.7/32 dev also");
  ip("route add 192.0.2.2/32 dev also");
  UdpSocket near(1, any(true, "near"));
  UdpSocket far = inOther([&] { return UdpSocket(2, any(true)); });
  near.enqueue(datagram({address("192.0.2.2"), far.local().port}, 10));
  EXPECT_TRUE(near.flush(observer_));
  EXPECT_EQ(receive(far, 1).size(), 1u);
}

TEST_F(UdpWire, FullSendBufferKeepsTheRestInOrder) {
  SocketOptions tiny = any(true, "near");
  tiny.bufferBytes = 1;
  UdpSocket near(1, tiny);
  UdpSocket far = inOther([&] { return UdpSocket(2, any(true)); });
  // Datagrams that wait at a slow link count against the socket's buffer.
  shell("tc qdisc add dev near root tbf rate 2mbit burst 3000 limit 1000000");
  Endpoint to{address("192.0.2.2"), far.local().port};
  for (int i = 0; i < 30; ++i) {
    Datagram d = datagram(to, 1000);
    d.bytes.data()[0] = static_cast<uint8_t>(i);
    near.enqueue(std::move(d));
  }
  EXPECT_FALSE(near.flush(observer_));
  EXPECT_GT(near.queued(), 0u);
  EXPECT_GT(near.counters().blocked, 0u);
  for (int i = 0; i < 100 && near.queued(); ++i) {
    pollfd p{near.fd(), POLLOUT, 0};
    ::poll(&p, 1, 100);
    near.flush(observer_);
  }
  auto got = receive(far, 30);
  ASSERT_EQ(got.size(), 30u);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(got[i].bytes.data()[0], i);
}

// ---------------------------------------------------------------- netlink: following

class Monitor : public NetNamespaceTest {
 protected:
  /// The kernel reports a new device's carrier up to a second later. So the monitor's reports about
  /// `near` are only checked after that.
  void joinAndSettle() {
    joinNamespaces();
    Time end = monotonicNow() + 10s;
    while (ip("link show near").find("state UP") == std::string::npos && monotonicNow() < end)
      ::usleep(10'000);
  }
  /// A file of commands for `ip -batch`.
  static std::string writeBatch(const std::string& lines) {
    std::string path = testing::TempDir() + "/gwio_batch_" + std::to_string(::getpid());
    std::ofstream(path) << lines;
    return path;
  }
  static void runBatch(const std::string& lines) {
    std::string path = writeBatch(lines);
    ip("-batch " + path);
    ::unlink(path.c_str());
  }
  /// Commands that add (or delete, `verb` "del") `count` addresses of `near`.
  static std::string addressLines(const std::string& verb, int count) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += "addr " + verb + " 10.1." + std::to_string(i / 250) + "." +
               std::to_string(i % 250 + 1) + "/32 dev near\n";
    return lines;
  }
  static std::vector<std::string> wait(NetlinkMonitor& m, const std::string& text,
                                       Duration* took = nullptr) {
    Time began = monotonicNow();
    std::vector<std::string> seen;
    while (monotonicNow() < began + 2s) {
      if (!readable(m.fd(), 100)) continue;
      for (const NetworkChange& c : m.process(monotonicNow())) seen.push_back(c.text);
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) break;
    }
    if (took) *took = monotonicNow() - began;
    return seen;
  }
};

TEST_F(Monitor, KnowsWhatWasThereBefore) {
  joinAndSettle();
  ip("route add default via 192.0.2.2");
  NetlinkMonitor m;
  const Link* near = m.table().find("near");
  ASSERT_NE(near, nullptr);
  EXPECT_TRUE(near->up);
  EXPECT_EQ(near->mtu, 1500u);
  EXPECT_GE(near->addresses.size(), 2u);
  EXPECT_TRUE(m.table().hasDefaultRoute(near->index, Family::kV4));
  EXPECT_FALSE(m.table().hasDefaultRoute(near->index, Family::kV6));
  EXPECT_EQ(m.table().find("far"), nullptr);
}

TEST_F(Monitor, SeesALostCarrierWithinMilliseconds) {
  // The kernel reports carrier changes at most once per second for the whole host. Only for devices
  // stacked on another one it reports them at once, and it recognises these by an index that
  // differs from their lower device's (net/core/link_watch.c). The following command makes the
  // indices differ.
  ip("link add spare type veth peer name spare2");
  joinAndSettle();
  NetlinkMonitor m;
  double took = 0;  // ms
  int attempt = 0;
  do {
    inOther([] { ip("link set far down"); });
    Duration until{};
    ASSERT_THAT(wait(m, "near is down", &until), testing::Contains("near is down"));
    took = toMilliseconds(until);
    EXPECT_FALSE(m.table().find("near")->up);
    inOther([] { ip("link set far up"); });
    wait(m, "near is up");
    EXPECT_TRUE(m.table().find("near")->up);
    ++attempt;
    if (took >= 50)
      std::printf("attempt %d: the word of the lost carrier took %.1f ms\n", attempt, took);
  } while (took >= 50 && attempt < kAttempts);
  EXPECT_LT(took, 50);
}

TEST_F(Monitor, SeesAddressesRoutesAndLinksComeAndGo) {
  NetlinkMonitor m;
  joinNamespaces();
  wait(m, "near is up");
  ip("addr add 198.51.100.1/24 dev near");
  EXPECT_THAT(wait(m, "near has 198.51.100.1/24"), testing::Contains("near has 198.51.100.1/24"));
  ip("route add default via 198.51.100.2 metric 7");
  EXPECT_THAT(wait(m, "near has an IPv4 default route via 198.51.100.2"), Not(IsEmpty()));
  ip("addr del 198.51.100.1/24 dev near");
  wait(m, "near lost 198.51.100.1/24");
  ip("link del near");
  wait(m, "near is gone");
  EXPECT_EQ(m.table().find("near"), nullptr);
}

TEST_F(Monitor, SeesRoutesThatTheKernelDropsWithoutAWord) {
  joinAndSettle();
  ip("route add default via 192.0.2.2");
  NetlinkMonitor m;
  int index = m.table().find("near")->index;
  ip("link set near down");
  wait(m, "near is down");
  EXPECT_FALSE(m.table().hasDefaultRoute(index, Family::kV4));
}

TEST_F(Monitor, ReadsEverythingAnewAfterAnOverrun) {
  joinNamespaces();
  NetlinkMonitor m;
  runBatch(addressLines("add", 3000));
  while (readable(m.fd(), 0)) m.process(monotonicNow());
  EXPECT_GE(m.overruns(), 1u);
  EXPECT_GE(m.table().find("near")->addresses.size(), 3002u);
}

std::set<std::string> addressesOf(const NetworkTable& table, const std::string& device) {
  std::set<std::string> out;
  for (const LinkAddress& a : table.find(device)->addresses)
    out.insert(a.address.toString() + "/" + std::to_string(a.prefixLength));
  return out;
}

// Messages that waited when the queue overflowed are older than the state that is then read again.
// The monitor must not apply them on top of it.
TEST_F(Monitor, AnOverrunOfAShortQueueLeavesTheTruth) {
  joinAndSettle();
  NetlinkMonitor m(4096);
  const std::string there = addressLines("add", 249);
  runBatch(there + addressLines("del", 249));
  Time now = monotonicNow();
  m.process(now);
  EXPECT_GE(m.overruns(), 1u);
  EXPECT_EQ(m.deadline(), kNever);
  EXPECT_EQ(addressesOf(m.table(), "near"), addressesOf(NetlinkMonitor().table(), "near"));

  runBatch(there);
  m.process(now);
  EXPECT_GT(m.deadline(), now) << "not twice in a row";
  ASSERT_LE(m.deadline(), now + 1s);
  m.process(m.deadline());
  EXPECT_EQ(m.deadline(), kNever);
  EXPECT_EQ(addressesOf(m.table(), "near"), addressesOf(NetlinkMonitor().table(), "near"));
  ip("addr add 10.2.0.1/32 dev near");
  EXPECT_THAT(wait(m, "near has 10.2.0.1/32"), testing::Contains("near has 10.2.0.1/32"))
      << "and it goes on";
}

TEST_F(Monitor, AStormOfOverrunsIsReadAnewLessAndLess) {
  joinAndSettle();
  NetlinkMonitor m(4096);
  const std::string storm = addressLines("add", 249) + addressLines("del", 249);
  Time now = monotonicNow();
  auto overrun = [&] {
    uint64_t before = m.overruns();
    runBatch(storm);
    m.process(now);
    ASSERT_GT(m.overruns(), before);
  };
  overrun();
  ASSERT_EQ(m.deadline(), kNever) << "the first one is read anew at once";
  for (Duration pause : {1s, 2s, 4s, 8s, 16s, 32s, 32s}) {
    for (int i = 0; i < 2; ++i) {
      overrun();
      EXPECT_EQ(toSeconds(m.deadline() - now), toSeconds(pause));
    }
    now = m.deadline();
    m.process(now);
    ASSERT_EQ(m.deadline(), kNever);
  }
  now += 2min;
  overrun();
  ASSERT_EQ(m.deadline(), kNever) << "at once, after a calm time";
  overrun();
  EXPECT_EQ(toSeconds(m.deadline() - now), 1);
}

// Addresses and routes change all the time while they are listed.
TEST_F(Monitor, ListsThatChangeWhileTheyAreReadAreNoReasonToGiveUp) {
  joinAndSettle();
  std::string fill, churn;
  for (int i = 0; i < 1000; ++i) {
    std::string at = std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + "/32 dev near\n";
    fill += "addr add 10.1." + at + "route add 10.9." + at;
    churn += "addr del 10.1." + at + "route del 10.9." + at + "addr add 10.1." + at +
             "route add 10.9." + at;
  }
  runBatch(fill);
  std::string path = writeBatch(churn);
  shell("(for i in $(seq 1000); do [ -e " + path + " ] && ip -batch " + path +
        "; done) >/dev/null 2>&1 &");
  NetlinkMonitor m(4096);
  Time now = monotonicNow();
  for (int i = 0; i < 20; ++i) {
    now += 500ms;
    m.process(now);
    EXPECT_NE(m.table().find("near"), nullptr);
  }
  ::unlink(path.c_str());
  Time end = monotonicNow() + 10s;
  do {
    ::usleep(100'000);
    now += 40s;
    m.process(now);
  } while ((m.deadline() != kNever || readable(m.fd(), 300)) && monotonicNow() < end);
  EXPECT_EQ(addressesOf(m.table(), "near"), addressesOf(NetlinkMonitor().table(), "near"));
}

TEST_F(Monitor, AnAddressWhoseLifetimeRanOutIsNoLossOfOurs) {
  joinAndSettle();
  NetlinkMonitor m;
  for (const char* a : {"198.51.100.9/24", "2001:db8:9::9/64"}) {
    const std::string gone = std::string("near lost ") + a;
    ip(std::string("addr add ") + a + " dev near valid_lft 2 preferred_lft 2");
    std::vector<std::string> seen;
    for (int i = 0; i < 5 && std::find(seen.begin(), seen.end(), gone) == seen.end(); ++i) {
      for (std::string& line : wait(m, gone)) seen.push_back(std::move(line));
    }
    EXPECT_THAT(seen, testing::Contains(gone));
    EXPECT_THAT(seen, Not(testing::Contains("addresses, routes or rules of ours may be gone")));
  }
}

TEST_F(Monitor, TellsWhenSomethingOfOursMayBeGone) {
  joinAndSettle();
  ip("rule add oif near lookup 6600 priority 6601");
  ip("route add 10.9.0.0/24 dev near proto 66");
  ip("route add 10.8.0.0/24 dev near");
  NetlinkMonitor m;
  const std::string word = "addresses, routes or rules of ours may be gone";
  for (const char* change : {"rule del priority 6601", "route del 10.9.0.0/24",
                             "addr del 192.0.2.1/24 dev near", "link set near down"}) {
    ip(change);
    EXPECT_THAT(wait(m, word), testing::Contains(word)) << change;
  }
  ip("link set near up");
  wait(m, "near is up");
  ip("route add 10.8.0.0/24 dev near");
  ip("route del 10.8.0.0/24");
  readable(m.fd(), 100);
  for (const NetworkChange& c : m.process(monotonicNow())) EXPECT_NE(c.text, word) << "not ours";
}

// ---------------------------------------------------------------- netlink: changing

class Config : public NetNamespaceTest {
 protected:
  void SetUp() override {
    NetNamespaceTest::SetUp();
    if (HasFatalFailure()) return;
    ip("link add eth1 type veth peer name peer1");
    ip("link add br0 type bridge");
    withoutLinkLocal("eth1");
    withoutLinkLocal("peer1");
    ip("link set peer1 up");
  }
  /// Link-local addresses appear and disappear with delays.
  static void withoutLinkLocal(const std::string& device) {
    ip("link set " + device + " addrgenmode none");
  }
  static std::string everything() {
    return ip("-o link | sed 's/ qdisc [^ ]*//; s/ state [^ ]*//; s/NO-CARRIER,//; s/,M-DOWN//; "
              "s/LOWERLAYERDOWN//'") +
           ip("-o addr") + ip("-4 route show table all") +
           ip("-6 route show table all | grep -v ff00:: | sort") + ip("rule") + ip("-6 rule");
  }
  static RouteSpec route(const std::string& destination, const std::string& device) {
    RouteSpec r;
    r.destination = *Prefix::parse(destination);
    r.device = device;
    return r;
  }
  static RuleSpec rule(uint32_t priority, uint32_t table) {
    RuleSpec r;
    r.priority = priority;
    r.outInterface = "eth1";
    r.table = table;
    return r;
  }
  static void configure(NetlinkConfig& c) {
    c.setMtu("eth1", 1400);
    c.setMtu("eth1", 1300);
    c.addAddress("eth1", {address("10.66.0.1"), 24});
    c.addAddress("eth1", {address("fd66::1"), 64});
    c.setLinkUp("eth1");
    c.addRoute(route("10.77.0.0/16", "eth1"));
    c.addRoute(route("fd77::/64", "eth1"));
    RouteSpec via = route("0.0.0.0/0", "eth1");
    via.via = address("192.0.2.1");
    via.table = 6600;
    via.onLink = true;
    c.addRoute(via);
    c.addRule(rule(6601, 6600));
    RuleSpec suppress = rule(6600, kMainTable);
    suppress.suppressPrefixLength = 0;
    c.addRule(suppress);
    suppress.family = Family::kV6;
    c.addRule(suppress);
  }
};

TEST_F(Config, ChangesTheHostAndTakesEverythingBack) {
  std::string before = everything();
  {
    NetlinkConfig c;
    configure(c);
    EXPECT_THAT(ip("link show eth1"), testing::AllOf(HasSubstr("mtu 1300"), HasSubstr("UP")));
    EXPECT_THAT(ip("addr show eth1"),
                testing::AllOf(HasSubstr("10.66.0.1/24"), HasSubstr("fd66::1/64")));
    EXPECT_THAT(ip("route"), HasSubstr("10.77.0.0/16 dev eth1 proto 66"));
    EXPECT_THAT(ip("route show table 6600"),
                HasSubstr("default via 192.0.2.1 dev eth1 proto 66 onlink"));
    EXPECT_THAT(ip("rule"),
                HasSubstr("6600:\tfrom all oif eth1 lookup main suppress_prefixlength 0 proto 66"));
    EXPECT_THAT(ip("rule"), HasSubstr("6601:\tfrom all oif eth1 lookup 6600 proto 66"));
    EXPECT_THAT(c.undo(), IsEmpty());
    EXPECT_THAT(c.done(), IsEmpty());
    EXPECT_EQ(everything(), before);
    configure(c);
  }
  EXPECT_EQ(everything(), before) << "destruction takes back too";
}

TEST_F(Config, WhatOthersTakeAwayIsPutBack) {
  ip("link set br0 address 02:00:00:00:00:01");  // a bridge without ports otherwise has none
  std::string before = everything();
  NetlinkConfig c;
  configure(c);
  c.setMaster("eth1", "br0");
  std::string configured = everything();
  EXPECT_THAT(c.restore().back, IsEmpty());
  for (const char* change :
       {"addr flush dev eth1", "link set eth1 down", "route flush proto 66",
        "route flush table 6600", "rule del priority 6600", "-6 rule del priority 6600",
        "rule del priority 6601", "link set eth1 mtu 1280", "link set eth1 nomaster"}) {
    ip(change);
    EXPECT_NE(everything(), configured) << change;
    HostNetwork::Restored restored = c.restore();
    EXPECT_THAT(restored.back, Not(IsEmpty())) << change;
    EXPECT_THAT(restored.failed, IsEmpty()) << change;
    EXPECT_EQ(everything(), configured) << change;
  }
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_EQ(everything(), before);
}

TEST_F(Config, NetworksElsewhereAreThoseOfOtherDevicesRoutes) {
  ip("link set eth1 up");
  ip("addr add 10.66.0.1/24 dev eth1");
  ip("route add 10.20.0.0/16 via 10.66.0.9");
  ip("route add unreachable 10.30.0.0/16");
  ip("route add default via 10.66.0.9");
  ip("route add 10.40.0.0/16 dev eth1 table 77");
  NetlinkConfig c;
  EXPECT_THAT(c.networksElsewhere("braid0"),
              IsSupersetOf({*Prefix::parse("10.66.0.0/24"), *Prefix::parse("10.20.0.0/16")}));
  for (const char* other : {"10.30.0.0/16", "0.0.0.0/0", "10.40.0.0/16"})
    EXPECT_THAT(c.networksElsewhere("braid0"), Not(Contains(*Prefix::parse(other)))) << other;
  EXPECT_THAT(c.networksElsewhere("eth1"), Not(Contains(*Prefix::parse("10.20.0.0/16"))));
}

TEST_F(Config, WhatOthersPutInPlaceOfOursStays) {
  ip("link set eth1 up");
  NetlinkConfig c;
  c.addRoute(route("10.77.0.0/16", "eth1"));
  ip("addr add 10.66.0.1/24 dev eth1");
  ip("route del 10.77.0.0/16");
  ip("route add 10.77.0.0/16 via 10.66.0.9");
  HostNetwork::Restored restored = c.restore();
  EXPECT_THAT(restored.back, IsEmpty());
  EXPECT_THAT(ip("route"), HasSubstr("10.77.0.0/16 via 10.66.0.9"));
}

TEST_F(Config, NothingIsPutBackOnADeviceThatIsGone) {
  NetlinkConfig c;
  configure(c);
  ip("link del eth1");
  HostNetwork::Restored restored = c.restore();
  EXPECT_THAT(restored.back, IsEmpty());
  EXPECT_THAT(restored.failed, IsEmpty());
}

TEST_F(Config, UndoIsFineWhenTheDeviceIsGone) {
  NetlinkConfig c;
  configure(c);
  ip("link del eth1");
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_THAT(ip("rule"), Not(HasSubstr("6600")));
}

TEST_F(Config, LeftoversOfAKilledProcessAreTakenOver) {
  std::string before = everything();
  pid_t child = ::fork();
  if (child == 0) {
    try {
      auto* leaked = new NetlinkConfig;
      configure(*leaked);
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_THAT(ip("rule"), HasSubstr("6601"));
  ip("link set eth1 down mtu 1500");
  NetlinkConfig c;
  configure(c);
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_EQ(everything(), before);
}

TEST_F(Config, StaleRoutesOfATableAreRemovedButNotOthers) {
  ip("link set eth1 up");
  ip("route add default via 192.0.2.9 dev eth1 onlink table 6600 proto 66");
  ip("route add 10.1.0.0/16 dev eth1 table 6600 proto static");
  NetlinkConfig c;
  RouteSpec own = route("10.2.0.0/16", "eth1");
  own.table = 6600;
  c.addRoute(own);
  c.removeStaleRoutes(6600);
  std::string left = ip("route show table 6600");
  EXPECT_THAT(left, Not(HasSubstr("default")));
  EXPECT_THAT(left, HasSubstr("10.1.0.0/16"));
  EXPECT_THAT(left, HasSubstr("10.2.0.0/16"));
}

TEST_F(Config, RulesThatAKilledProcessLeftAreRemoved) {
  ip("rule add fwmark 0x80/0xff lookup 77 protocol 66 priority 6100");
  ip("-6 rule add fwmark 0x80/0xff lookup 77 protocol 66 priority 6100");
  ip("rule add fwmark 0x81 lookup 77 protocol static priority 6100");  // another's
  ip("rule add fwmark 0x82 lookup 78 protocol 66 priority 6100");
  ip("rule add fwmark 0x83 lookup 77 protocol 66 priority 6101");
  NetlinkConfig c;
  EXPECT_TRUE(c.hasOtherRule(6100, 77));
  EXPECT_FALSE(c.hasOtherRule(6101, 77));
  c.removeStaleRules(6100, 77);
  std::string left = ip("rule") + ip("-6 rule");
  EXPECT_THAT(left, Not(HasSubstr("0x80")));
  for (const char* mark : {"0x81", "0x82", "0x83"}) EXPECT_THAT(left, HasSubstr(mark));
}

TEST_F(Config, TablesThatAKilledProcessLeftAreRemovedWithTheirRules) {
  ip("link set eth1 up");
  std::string before = everything();
  NetlinkConfig c;
  RouteSpec own = route("0.0.0.0/0", "eth1");
  own.table = 6602;
  c.addRoute(own);
  std::string kept = everything();
  ip("route add default via 192.0.2.9 dev eth1 onlink table 6600 proto 66");
  ip("-6 route add default dev eth1 table 6631 proto 66");
  ip("rule add oif eth1 lookup main suppress_prefixlength 0 protocol 66 priority 6600");
  ip("rule add oif eth1 lookup 6600 protocol 66 priority 6601");
  ip("-6 rule add fwmark 0x5e/0xff lookup main suppress_prefixlength 0 protocol 66 priority 6562");
  ip("-6 rule add fwmark 0x5e/0xff lookup 6631 protocol 66 priority 6563");
  c.removeStaleTables(6600, 32);
  EXPECT_EQ(everything(), kept);
  // Another gateway's, at the same priority.
  ip("rule add fwmark 0x48/0xff lookup main suppress_prefixlength 0 protocol 66 priority 6500");
  ip("rule add fwmark 0x48/0xff lookup 6632 protocol 66 priority 6501");
  ip("route add default dev eth1 table 6632 proto 66");
  ip("rule add fwmark 0x40/0xff lookup 6600 protocol 66 priority 6501");
  c.removeStaleTables(6600, 32);
  EXPECT_THAT(ip("rule"), testing::AllOf(Not(HasSubstr("lookup 6600")), HasSubstr("lookup 6632"),
                                         HasSubstr("suppress_prefixlength 0")));
  EXPECT_THAT(ip("route show table 6632"), HasSubstr("default"));
  c.removeStaleTables(6632, 32);
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_EQ(everything(), before);
}

TEST_F(Config, WhatIsToStayOutlivesTheProcess) {
  RouteSpec refused;
  refused.destination = *Prefix::parse("0.0.0.0/0");
  refused.kind = RouteSpec::Kind::kUnreachable;
  refused.table = 77;
  refused.stays = true;
  RuleSpec guard;
  guard.priority = 6700;
  guard.table = 77;
  guard.localOnly = guard.inverted = guard.stays = true;
  for (int times = 0; times < 2; ++times) {  // the second one takes it over
    NetlinkConfig c;
    c.addRoute(refused);
    c.addRule(guard);
    EXPECT_THAT(c.undo(), IsEmpty());
  }
  EXPECT_THAT(ip("route show table 77"), HasSubstr("unreachable default"));
  EXPECT_THAT(ip("rule"), HasSubstr("not from all iif lo lookup 77"));
  NetlinkConfig c;
  c.removeStaleRules(6700, 77);
  c.removeStaleRoutes(77);
  EXPECT_EQ(ip("route show table all").find("unreachable"), std::string::npos);
  EXPECT_THAT(ip("rule"), Not(HasSubstr("6700")));
}

TEST_F(Config, AFilterThatStaysIsTold) {
  FilterRules guard;
  guard.device = "braid0";
  guard.markMask = 0xff;
  guard.guard = true;
  guard.uplinks = {"eth1"};
  guard.outside = 0x40;
  guard.outsideMask = 0xe0;
  NftFilter(std::string("braid0")).set(guard);
  NftFilter after("braid0");
  after.set({});
  EXPECT_THAT(shell("nft list ruleset"), Not(HasSubstr("braid_routes-braid0")));
  guard.guard = false;
  guard.replies = {{"eth1", 0x40}};
  NftFilter owner("braid0");
  owner.set(guard);
  EXPECT_THROW(after.set({}), SystemError) << "only its process can remove it";
  EXPECT_THAT(shell("nft list ruleset"), HasSubstr("braid_routes-braid0"));
}

TEST_F(Config, PacketsWithAMarkAreDeliveredHere) {
  ip("link set eth1 up");
  std::string before = everything();
  NetlinkConfig c;
  for (const char* all : {"0.0.0.0/0", "::/0"}) {
    RouteSpec here = route(all, "eth1");
    here.table = 0x42000007;
    here.kind = RouteSpec::Kind::kLocal;
    RuleSpec marked;
    marked.family = here.destination.address.family;
    marked.priority = 6500;
    marked.table = marked.mark = 0x42000007;
    for (int times = 0; times < 2; ++times) {  // existing settings are taken over
      c.addRoute(here);
      c.addRule(marked);
    }
  }
  EXPECT_THAT(ip("route get 203.0.113.9 mark 0x42000007"), HasSubstr("local 203.0.113.9"));
  EXPECT_THAT(ip("route get 2001:db8:7::9 mark 0x42000007"), HasSubstr("local 2001:db8:7::9"));
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_EQ(everything(), before);
}

TEST_F(Config, WhatOthersSetIsNamedAndLeftAlone) {
  ip("link set eth1 up");
  ip("addr add 10.66.0.1/24 dev eth1");
  ip("route add 10.77.0.0/16 via 10.66.0.9 proto static");
  ip("route add 10.77.0.0/16 via 10.66.0.8 metric 500 proto static");
  ip("rule add oif eth1 lookup 6600 priority 6601");
  std::string before = everything();
  NetlinkConfig c;
  EXPECT_THAT(errorOf([&] {
                c.addAddress("eth1", {address("10.66.0.1"), 24});
              }),
              HasSubstr("there is already address 10.66.0.1/24 that was set by others"));
  EXPECT_THAT(errorOf([&] { c.addRoute(route("10.77.0.0/16", "eth1")); }),
              HasSubstr("there is already route 10.77.0.0/16 via 10.66.0.9 dev eth1"));
  // Kernels that compare the protocol allow the same rule twice. Then undo() must remove only the
  // daemon's rule.
  EXPECT_THAT(errorOf([&] { c.addRule(rule(6601, 6600)); }),
              AnyOf(HasSubstr("set by others"), "no error"));
  c.undo();
  EXPECT_EQ(everything(), before);
}

TEST_F(Config, RemovedRoutesAreNotTakenBackAgain) {
  ip("link set eth1 up");
  NetlinkConfig c;
  c.addRoute(route("10.77.0.0/16", "eth1"));
  c.removeRoute(route("10.77.0.0/16", "eth1"));
  EXPECT_THAT(c.done(), IsEmpty());
  EXPECT_THAT(ip("route"), Not(HasSubstr("10.77")));
  c.removeRoute(route("10.77.0.0/16", "eth1"));
  ip("route add 10.77.0.0/16 dev eth1");
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_THAT(ip("route"), HasSubstr("10.77"));
}

TEST_F(Config, BridgePortAndBack) {
  NetlinkConfig c;
  c.setMaster("eth1", "br0");
  EXPECT_THAT(ip("link show eth1"), HasSubstr("master br0"));
  EXPECT_THAT(c.undo(), IsEmpty());
  EXPECT_THAT(ip("link show eth1"), Not(HasSubstr("master")));
}

TEST_F(Config, ErrorsNameTheRemedy) {
  NetlinkConfig c;
  EXPECT_THAT(errorOf([&] { c.setLinkUp("nosuch"); }), HasSubstr("no interface named 'nosuch'"));
  EXPECT_THAT(errorOf([&] { c.addRoute(route("10.0.0.0/8", "eth1")); }),
              HasSubstr("the interface is down"));
  ip("link set eth1 up");
  RouteSpec r = route("10.0.0.0/8", "eth1");
  r.via = address("203.0.113.1");
  EXPECT_THAT(errorOf([&] { c.addRoute(r); }), HasSubstr("gateway is not reachable"));
}

// Runs f in a child process without any capability. Returns the exception's text.
template <typename F>
std::string withoutCapabilities(F&& f) {
  int fds[2];
  if (::pipe(fds) != 0) return "no pipe";
  pid_t child = ::fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    ::syscall(SYS_capset, &header, none);
    std::string what = errorOf(f);
    ssize_t written = ::write(fds[1], what.data(), what.size());
    ::_exit(written < 0);
  }
  UniqueFd reader(fds[0]);
  ::close(fds[1]);
  char buffer[1000];
  ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
  ::waitpid(child, nullptr, 0);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "nothing";
}

TEST_F(Config, MissingPrivilegesAreNamed) {
  EXPECT_THAT(withoutCapabilities([] {
                NetlinkConfig().addAddress("eth1", {address("10.0.0.1"), 24});
              }),
              HasSubstr("needs CAP_NET_ADMIN"));
  EXPECT_THAT(withoutCapabilities([] { NetlinkConfig().setLinkUp("eth1"); }),
              HasSubstr("needs CAP_NET_ADMIN"));
  EXPECT_THAT(withoutCapabilities([] {
                LinuxTunDevice({Kind::kTun, "tun9"});
              }),
              HasSubstr("needs CAP_NET_ADMIN"));
}

TEST_F(Config, DroppedPrivilegesLeaveWhatTheDaemonNeeds) {
  std::string outcome = withoutCapabilities([] { dropPrivileges(); });
  EXPECT_EQ(outcome, "no error") << "nothing to drop is fine";
  pid_t child = ::fork();
  if (child == 0) {
    dropPrivileges();
    std::string trouble = errorOf([] {
      NetlinkConfig().setLinkUp("eth1");
      SocketOptions o;
      o.local = address("0.0.0.0");
      o.interface = "eth1";
      UdpSocket(1, o);
    });
    bool mayStillUnshare = ::unshare(CLONE_NEWNET) == 0;
    ::_exit(trouble == "no error" && !mayStillUnshare ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Config, AnotherUserKeepsWhatTheDaemonNeedsAndNoMore) {
  EXPECT_THAT(errorOf([] { becomeUser("no-such-user-here"); }),
              HasSubstr("there is no user 'no-such-user-here'"));
  EXPECT_THAT(withoutCapabilities([] { becomeUser("nobody"); }), HasSubstr("start braidd as root"));
  pid_t child = ::fork();
  if (child == 0) {
    std::string trouble = errorOf([] {
      becomeUser("nobody");
      NetlinkConfig().setLinkUp("eth1");
      SocketOptions o;
      o.local = address("0.0.0.0");
      o.interface = "eth1";
      o.port = 443;
      UdpSocket(1, o);
    });
    bool rootless = ::getuid() != 0 && ::geteuid() != 0 && ::getegid() != 0 && ::setuid(0) != 0;
    bool mayStillReadAll = ::access("/etc/shadow", R_OK) == 0 || ::unshare(CLONE_NEWNET) == 0;
    ::_exit(trouble == "no error" && rootless && !mayStillReadAll ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Config, WhatHoldsKeysIsNotDumped) {
  ASSERT_EQ(::prctl(PR_GET_DUMPABLE), 1);
  allowDumps(false);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 0);
  allowDumps(true);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1);
}

// ---------------------------------------------------------------- uplinks

TEST_F(Config, UplinkSendsThroughItsOwnGateway) {
  ip("link set eth1 up");
  ip("addr add 192.0.2.5/24 dev eth1");
  ip("link add lan type veth peer name lanpeer");
  withoutLinkLocal("lan");
  withoutLinkLocal("lanpeer");
  ip("link set lanpeer up");
  ip("link set lan up");
  ip("addr add 10.5.0.1/24 dev lan");
  ip("route add default via 10.5.0.254 dev lan");
  ip("route add 198.51.100.0/24 via 192.0.2.7");
  std::string before = everything();
  {
    NetlinkConfig routing;
    NetlinkMonitor monitor;
    Loop loop;
    LinuxHost host(loop);
    PacketPool pool(1500, 64);
    MockObserver observer;
    SocketTable sockets(host, pool, false, observer, [](auto) { return size_t{0}; });
    SocketIds ids;
    Uplinks uplinks(sockets, routing, ids);
    UplinkConfig c;
    c.name = "dsl";
    c.interface = "eth1";
    c.gateway = UplinkConfig::Gateway::kAddress;
    c.gateways = {address("192.0.2.1")};
    uplinks.configure({c}, monitor.table());
    ASSERT_TRUE(uplinks.specs()[0].up) << uplinks.takeNotes().front();
    ASSERT_EQ(uplinks.specs()[0].sockets.size(), 1u);
    const DatagramSocket* socket = sockets.find(uplinks.specs()[0].sockets[0].id);
    ASSERT_NE(socket, nullptr);
    EXPECT_EQ(socket->local().address, address("192.0.2.5"));
    EXPECT_THAT(ip("route get 203.0.113.1 oif eth1"), HasSubstr("via 192.0.2.1 dev eth1"));
    EXPECT_THAT(ip("route get 203.0.113.1"), HasSubstr("via 10.5.0.254 dev lan"));
    EXPECT_THAT(ip("route get 192.0.2.9 oif eth1"), Not(HasSubstr("via")));
    EXPECT_THAT(ip("route get 198.51.100.9 oif eth1"), HasSubstr("via 192.0.2.7"));

    ip("link set eth1 down");
    ip("link set eth1 up");
    uplinks.update(monitor.table());
    Time end = monotonicNow() + 3s;
    do {
      readable(monitor.fd(), 100);
      monitor.process(monotonicNow());
      uplinks.update(monitor.table());
    } while (!uplinks.specs()[0].up && monotonicNow() < end);
    EXPECT_THAT(ip("route get 203.0.113.1 oif eth1"), HasSubstr("via 192.0.2.1 dev eth1"));
    uplinks.close();
    EXPECT_THAT(routing.done(), IsEmpty());
  }
  ip("route add 198.51.100.0/24 via 192.0.2.7");  // lost when the link was off
  EXPECT_EQ(everything(), before);
}

// ---------------------------------------------------------------- device

class DeviceWire : public NetNamespaceTest {
 protected:
  template <typename Done>
  std::vector<Packet> readUntil(LinuxTunDevice& d, Done&& done) {
    std::vector<Packet> out;
    while (readable(d.fd())) {
      d.read(pool_, 64, [&](Packet&& p) { out.push_back(std::move(p)); });
      if (std::any_of(out.begin(), out.end(), done)) break;
    }
    return out;
  }
  static constexpr unsigned kTcpSegments = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  static constexpr unsigned kUdpSegments = 0x20 | 0x40;  // TUN_F_USO4, TUN_F_USO6
  static bool isUdp(const Packet& p) {
    return p.size() > 28 && p.data()[0] == 0x45 && p.data()[9] == 17;
  }

  PacketPool pool_{1500, 256};
};

TEST_F(DeviceWire, TunCarriesPacketsBothWays) {
  LinuxTunDevice tun({Kind::kTun, "braid7"});
  EXPECT_EQ(tun.name(), "braid7");
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up");
  SocketOptions o;
  o.local = address("10.9.0.1");
  UdpSocket socket(1, o);
  testing::StrictMock<MockObserver> observer;
  Datagram d;
  d.route = {1, {}, {address("10.9.0.2"), 5000}};
  d.bytes = pool_.copy(std::vector<uint8_t>{1, 2, 3});
  socket.enqueue(std::move(d));
  EXPECT_TRUE(socket.flush(observer));
  auto packets = readUntil(tun, isUdp);
  auto at = std::find_if(packets.begin(), packets.end(), isUdp);
  ASSERT_NE(at, packets.end());
  EXPECT_EQ(at->size(), 20u + 8 + 3);
  EXPECT_EQ(at->headroom(), PacketPool::kHeadroom);
  // The answer is the question with both addresses and ports swapped, so the checksums stay
  // correct.
  uint8_t* ip4 = at->data();
  std::swap_ranges(ip4 + 12, ip4 + 16, ip4 + 16);
  std::swap_ranges(ip4 + 20, ip4 + 22, ip4 + 22);
  tun.write(std::move(*at));
  ASSERT_TRUE(readable(socket.fd()));
  ReceiveBatch batch(pool_);
  bool more;
  auto got = socket.receive(batch, 64, more);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from.remote.toString(), "10.9.0.2:5000");
  EXPECT_EQ(tun.counters().writtenPackets, 1u);
  tun.write(pool_.copy(std::vector<uint8_t>(3, 0)));
  EXPECT_EQ(tun.counters().writeErrors, 1u);
  got[0].bytes.reset();
}

TEST_F(DeviceWire, ReadsStopAtTheLimitAndDropWhatDoesNotFit) {
  shell("sysctl -q -w net.ipv6.conf.default.disable_ipv6=1");
  LinuxTunDevice tun({Kind::kTun, "braid7"});
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up mtu 3000");
  SocketOptions o;
  o.local = address("10.9.0.1");
  UdpSocket socket(1, o);
  testing::StrictMock<MockObserver> observer;
  PacketPool large(4000, 16);
  for (size_t size : {10, 1473, 1472, 10, 10}) {
    Datagram d;
    d.route = {1, {}, {address("10.9.0.2"), 5000}};
    d.bytes = large.copy(std::vector<uint8_t>(size));
    socket.enqueue(std::move(d));
  }
  EXPECT_TRUE(socket.flush(observer));
  std::vector<size_t> sizes;
  auto sink = [&](Packet&& p) { sizes.push_back(p.size()); };
  EXPECT_EQ(tun.read(pool_, 4, sink), 4u);
  EXPECT_EQ(tun.read(pool_, 4, sink), 1u);
  EXPECT_EQ(tun.read(pool_, 4, sink), 0u);
  EXPECT_THAT(sizes, testing::ElementsAre(38, 1500, 38, 38));
  EXPECT_EQ(tun.counters().readTooBig, 1u);
  EXPECT_EQ(tun.counters().readPackets, 4u);
}

TEST_F(DeviceWire, ExhaustedPoolDropsAndCounts) {
  LinuxTunDevice tun({Kind::kTun, "braid7"});
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up");
  PacketPool none(1500, 1);
  Packet only = none.allocate();
  shell("ping -c1 -W0.1 10.9.0.2 || true");
  EXPECT_GT(tun.read(none, 64, [](Packet&&) { FAIL(); }), 0u);
  EXPECT_GT(tun.counters().readNoBuffer, 0u);
}

TEST_F(DeviceWire, TapCarriesFrames) {
  LinuxTunDevice tap({Kind::kTap, "braid8"});
  ip("addr add 10.9.0.1/24 dev braid8");
  ip("link set braid8 up");
  shell("ping -c1 -W0.1 10.9.0.2 || true");
  auto isArp = [](const Packet& p) {
    return p.size() >= 42 && p.data()[12] == 0x08 && p.data()[13] == 0x06;
  };
  auto frames = readUntil(tap, isArp);
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), isArp));
}

// A device with a mirror behind it: packets of the host to 10.9.0.2 come back from there. So a TCP
// connection to that address ends at the host itself, and each byte crosses the device twice. The
// device outlives its owners; the settings of one owner must not apply to the next.
TEST_F(DeviceWire, TcpSegmentsCrossTheDeviceTogether) {
  enum class Offloads { kOn, kTcpOnly, kOff, kUnknown };
  using Case = std::pair<Offloads, bool>;  // and whether a loop watches the device
  for (auto [offloads, isWatched] :
       {Case{Offloads::kOn, false}, Case{Offloads::kTcpOnly, false}, Case{Offloads::kOff, false},
        Case{Offloads::kUnknown, false}, Case{Offloads::kOn, true}, Case{Offloads::kOff, true}}) {
    SCOPED_TRACE(testing::Message()
                 << "offloads " << static_cast<int>(offloads) << ", watched " << isWatched);
    PacketPool pool(1500, 4096);
    Loop loop;
    std::unique_ptr<LinuxTunDevice> device;
    DeviceOptions options{Kind::kTun, "braid7", offloads != Offloads::kOff};
    auto open = [&] { device = std::make_unique<LinuxTunDevice>(options); };
    if (offloads == Offloads::kUnknown) {
      onOlderKernel({{__NR_ioctl, 1, TUNSETOFFLOAD, EINVAL}}, open);
    } else if (offloads == Offloads::kTcpOnly) {  // before Linux 6.2
      onOlderKernel({{__NR_ioctl, 2, kTcpSegments | kUdpSegments, EINVAL}}, open);
    } else {
      open();
    }
    ASSERT_TRUE(device);
    LinuxTunDevice& tun = *device;
    ASSERT_EQ(::ioctl(tun.fd(), TUNSETPERSIST, 1), 0);
    ip("addr replace 10.9.0.1/24 dev braid7");
    ip("link set braid7 up");
    constexpr size_t kBytes = 8 << 20;
    auto tcp = [] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      timeval patience{10, 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      return fd;
    };
    UniqueFd listener = tcp();
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(5001);
    ::inet_pton(AF_INET, "10.9.0.1", &at.sin_addr);
    int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    std::atomic<bool> done = false;
    size_t received = 0, wrong = 0;
    std::thread server([&] {
      UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::vector<uint8_t> part(1 << 16);
      for (ssize_t n; (n = ::recv(peer.get(), part.data(), part.size(), 0)) > 0;) {
        for (ssize_t i = 0; i < n; ++i, ++received)
          wrong += part[static_cast<size_t>(i)] != (received * 7 >> 3 & 0xff);
      }
      done = true;
    });
    std::thread client([&] {
      UniqueFd fd = tcp();
      sockaddr_in to = at;
      ::inet_pton(AF_INET, "10.9.0.2", &to.sin_addr);
      if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
      std::vector<uint8_t> all(kBytes);
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i * 7 >> 3);
      for (size_t sent = 0; sent < all.size();) {
        ssize_t n = ::send(fd.get(), &all[sent], all.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<size_t>(n);
      }
    });
    auto mirror = [&] {
      tun.read(pool, 64, [&](Packet&& p) {
        EXPECT_LE(p.size(), 1500u);
        if (p.size() < 20 || p.data()[0] >> 4 != 4) return;
        std::swap_ranges(p.data() + 12, p.data() + 16, p.data() + 16);
        tun.write(std::move(p));
      });
      tun.flush();
    };
    Timer tick(loop, [] {});  // so that the end is seen
    if (isWatched) tun.watch(loop, mirror);
    auto end = std::chrono::steady_clock::now() + 20s;
    while (!done && std::chrono::steady_clock::now() < end) {
      tick.arm(monotonicNow() + 10ms);
      if (isWatched) {
        loop.runOnce(true);
      } else if (readable(tun.fd(), 10)) {
        mirror();
      }
    }
    EXPECT_TRUE(done);
    client.join();
    server.join();
    EXPECT_EQ(received, kBytes);
    EXPECT_EQ(wrong, 0u);
    const DeviceCounters& c = tun.counters();
    EXPECT_GT(c.readPackets, kBytes / 1500);
    EXPECT_EQ(c.readErrors + c.readTooBig + c.writeErrors, 0u);
    if (offloads == Offloads::kOn || offloads == Offloads::kTcpOnly) {
      EXPECT_LT(c.reads, c.readPackets / 3) << c.readPackets;
      EXPECT_LT(c.writes, c.writtenPackets / 3) << c.writtenPackets;
    } else {
      EXPECT_EQ(c.reads, c.readPackets + c.readNoBuffer);
    }
    EXPECT_EQ(c.readNoBuffer, 0u);
  }
}

// Writes more packets of one flow than a queue holds, then one packet of each of many other flows.
// Most of these are in other queues, and so among the first packets that are read.
TEST_F(DeviceWire, AFloodFillsItsOwnQueue) {
  constexpr unsigned kFlood = 3000, kOthers = 64, kMost = 256;
  LinuxTunDevice tun({Kind::kTun, "braid7", true, 16});
  ASSERT_EQ(tun.queues(), 16u);
  EXPECT_THAT(errorOf([] {
                LinuxTunDevice({Kind::kTun, "braid7", true, 16});
              }),
              HasSubstr("another process uses"));
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up");
  SocketOptions o;
  o.local = address("10.9.0.1");
  UdpSocket socket(1, o);
  testing::StrictMock<MockObserver> observer;
  auto send = [&](uint16_t port) {
    Datagram d;
    d.route = {1, {}, {address("10.9.0.2"), port}};
    d.bytes = pool_.copy(std::vector<uint8_t>(10));
    socket.enqueue(std::move(d));
    socket.flush(observer);
  };
  for (unsigned i = 0; i < kFlood; ++i) send(5000);
  for (uint16_t i = 0; i < kOthers; ++i) send(static_cast<uint16_t>(6000 + i));
  size_t flood = 0, others = 0;
  auto sink = [&](Packet&& p) { isUdp(p) && ++(load16(&p.data()[22]) == 5000 ? flood : others); };
  for (size_t got = 0; got < kMost;) got += tun.read(pool_, kMost - got, sink);
  EXPECT_GT(flood, 0u);
  EXPECT_GT(others, kOthers * 2 / 3);
  while (tun.read(pool_, kMost, sink) > 0) {
  }
  EXPECT_LE(flood, static_cast<size_t>(LinuxTunDevice::kKernelQueue));
}

// The kernel puts a flow into the queue to which the other direction was written. So a flood that
// is answered is never in the queue of the pings.
TEST_F(DeviceWire, AFloodThatIsAnsweredIsNotInTheWayOfPings) {
  LinuxTunDevice tun({Kind::kTun, "braid7", true, 2});
  ASSERT_EQ(tun.queues(), 2u);
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up");
  SocketOptions o;
  o.local = address("10.9.0.1");
  testing::StrictMock<MockObserver> observer;
  int raw = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  ASSERT_GE(raw, 0);
  auto ping = [&] {
    sockaddr_in to{AF_INET, 0, {htonl(0x0a090002)}, {}};
    std::array<uint8_t, 8> echo{8, 0, 0xf7, 0xff};
    EXPECT_EQ(
        ::sendto(raw, echo.data(), echo.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to), 8);
  };
  for (uint16_t port = 6000; port < 6008; ++port) {
    o.port = port;
    UdpSocket socket(1, o);
    auto send = [&] {
      Datagram d;
      d.route = {1, {}, {address("10.9.0.2"), 5000}};
      d.bytes = pool_.copy(std::vector<uint8_t>(10));
      socket.enqueue(std::move(d));
      socket.flush(observer);
    };
    auto answer = [&](Packet&& p) {
      std::swap_ranges(p.data() + 12, p.data() + 16, p.data() + 16);
      if (isUdp(p)) std::swap_ranges(p.data() + 20, p.data() + 22, p.data() + 22);
      tun.write(std::move(p));
      tun.flush();
    };
    send();
    ping();
    while (tun.read(pool_, 64, answer) > 0) {
    }
    for (int i = 0; i < 3000; ++i) send();
    ping();
    size_t pings = 0;
    while (tun.read(pool_, 64, [&](Packet&& p) { pings += p.data()[9] == IPPROTO_ICMP; }) > 0) {
    }
    EXPECT_EQ(pings, 1u) << port;
  }
  ::close(raw);
}

// Packets of several flows arrive interleaved. Those of each flow are nevertheless one write, and
// stay in order.
TEST_F(DeviceWire, RunsOfSeveralFlowsGrowAtTheSameTime) {
  constexpr size_t kFlows = 3, kEach = 5;
  LinuxTunDevice tun({Kind::kTun, "braid7", true});
  if (::ioctl(tun.fd(), TUNSETOFFLOAD, kTcpSegments | kUdpSegments) != 0)
    GTEST_SKIP() << "Linux before 6.2";
  ip("addr add 10.9.0.1/24 dev braid7");
  ip("link set braid7 up");
  SocketOptions o;
  o.local = address("10.9.0.1");
  std::vector<std::unique_ptr<UdpSocket>> sockets;
  for (size_t flow = 0; flow < kFlows; ++flow) {
    o.port = static_cast<uint16_t>(
        6000 + flow);  // with ports chosen by the kernel two flows might share a run
    sockets.push_back(std::make_unique<UdpSocket>(static_cast<SocketId>(flow + 1), o));
  }
  testing::StrictMock<MockObserver> observer;
  for (uint8_t number = 0; number < kEach; ++number) {
    for (size_t flow = 0; flow < kFlows; ++flow) {
      Datagram d;
      d.route = {static_cast<SocketId>(flow + 1), {}, {address("10.9.0.2"), 5000}};
      d.bytes = pool_.copy(std::vector<uint8_t>{number, static_cast<uint8_t>(flow)});
      sockets[flow]->enqueue(std::move(d));
      EXPECT_TRUE(sockets[flow]->flush(observer));
    }
  }
  size_t left = kFlows * kEach;
  while (left > 0 && readable(tun.fd())) {
    tun.read(pool_, 64, [&](Packet&& p) {
      if (!isUdp(p)) return;
      std::swap_ranges(p.data() + 12, p.data() + 16, p.data() + 16);
      std::swap_ranges(p.data() + 20, p.data() + 22, p.data() + 22);
      tun.write(std::move(p));
      --left;
    });
  }
  ASSERT_EQ(left, 0u);
  tun.flush();
  for (size_t flow = 0; flow < kFlows; ++flow) {
    ASSERT_TRUE(readable(sockets[flow]->fd()));
    ReceiveBatch batch(pool_);
    bool more;
    std::vector<uint8_t> numbers;
    for (ReceivedDatagram& d : sockets[flow]->receive(batch, 64, more)) {
      ASSERT_EQ(d.bytes.size(), 2u);
      EXPECT_EQ(d.bytes.data()[1], flow);
      numbers.push_back(d.bytes.data()[0]);
    }
    EXPECT_THAT(numbers, testing::ElementsAre(0, 1, 2, 3, 4));
  }
  EXPECT_EQ(tun.counters().writtenPackets, kFlows * kEach);
  EXPECT_EQ(tun.counters().writes, kFlows);
}

TEST_F(DeviceWire, TakenNamesAreNamed) {
  LinuxTunDevice tun({Kind::kTun, "braid7"});
  EXPECT_THAT(errorOf([] {
                LinuxTunDevice({Kind::kTun, "braid7"});
              }),
              HasSubstr("another process uses"));
  EXPECT_THAT(errorOf([] {
                LinuxTunDevice({Kind::kTun, "lo"});
              }),
              HasSubstr("name is taken by an interface"));
  EXPECT_THAT(errorOf([] {
                LinuxTunDevice({Kind::kTun, std::string(16, 'x')});
              }),
              HasSubstr("1 to 15 bytes"));
  EXPECT_THAT(errorOf([] { LinuxTunDevice({Kind::kTun, ""}); }), HasSubstr("1 to 15 bytes"));
}

TEST_F(DeviceWire, TheDeviceGoesWithTheObject) {
  { LinuxTunDevice tun({Kind::kTun, "braid7"}); }
  EXPECT_EQ(::if_nametoindex("braid7"), 0u);
}

}  // namespace
}  // namespace braid
