#include "host/linux/udp_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <string>
#include <vector>

#include "host/system.h"
#include "tests/older_kernel.h"

namespace braid::udp_socket_test {
namespace {

using testing::_;
using testing::Field;

class MockObserver : public SendObserver {
 public:
  MOCK_METHOD(void, onSendError, (const Datagram&, int), (override));
  MOCK_METHOD(void, onTooBig, (const Datagram&), (override));
};

Address loopback(bool v4) {
  return *Address::parse(v4 ? "127.0.0.1" : "::1");
}

SocketOptions on(const Address& local) {
  SocketOptions o;
  o.local = local;
  o.bufferBytes = 1 << 20;
  return o;
}

std::vector<uint8_t> text(const std::string& s) {
  return {s.begin(), s.end()};
}

// Loopback needs no privileges; what needs interfaces is in tests/e2e/gwio_test.cc.
class UdpSocketTest : public testing::TestWithParam<bool> {
 protected:
  Datagram datagram(const UdpSocket& to, const std::vector<uint8_t>& bytes,
                    Ecn ecn = Ecn::kNotEct) {
    Datagram d;
    d.route = {1, {}, to.local()};
    d.ecn = ecn;
    d.bytes = pool_.copy(bytes);
    return d;
  }
  std::vector<ReceivedDatagram> receiveAll(UdpSocket& s, size_t limit = 64) {
    pollfd p{s.fd(), POLLIN, 0};
    ::poll(&p, 1, 1000);
    std::vector<ReceivedDatagram> out;
    bool more = true;
    while (more) {
      for (ReceivedDatagram& r : s.receive(batch_, limit, more)) out.push_back(std::move(r));
    }
    return out;
  }

  PacketPool pool_{2048, 1024};
  ReceiveBatch batch_{pool_};
  testing::StrictMock<MockObserver> observer_;
  UdpSocket a_{1, on(loopback(GetParam()))};
  UdpSocket b_{2, on(loopback(GetParam()))};
};

INSTANTIATE_TEST_SUITE_P(Families, UdpSocketTest, testing::Bool(),
                         [](const auto& i) { return i.param ? "v4" : "v6"; });

TEST_P(UdpSocketTest, CarriesBytesEcnBitsAndBothAddresses) {
  for (Ecn ecn : {Ecn::kNotEct, Ecn::kEct1, Ecn::kEct0, Ecn::kCe}) {
    ASSERT_TRUE(a_.enqueue(datagram(b_, text("hello"), ecn)));
    EXPECT_TRUE(a_.flush(observer_));
    auto got = receiveAll(b_);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].ecn, ecn);
    EXPECT_EQ(got[0].from.socket, 2);
    EXPECT_EQ(got[0].from.local, loopback(GetParam()));
    EXPECT_EQ(got[0].from.remote, a_.local());
    EXPECT_EQ(std::string(got[0].bytes.view().begin(), got[0].bytes.view().end()), "hello");
  }
}

TEST_P(UdpSocketTest, EachMessageOfABatchHasItsOwnEcnBits) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(a_.enqueue(datagram(b_, {uint8_t(i)}, static_cast<Ecn>(i % 4))));
  }
  EXPECT_TRUE(a_.flush(observer_));
  auto got = receiveAll(b_);
  ASSERT_EQ(got.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(got[i].bytes.data()[0], i);
    EXPECT_EQ(got[i].ecn, static_cast<Ecn>(i % 4)) << i;
  }
}

TEST_P(UdpSocketTest, SendsAndReceivesMoreThanOneBatchInOrder) {
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(a_.enqueue(datagram(b_, {uint8_t(i)})));
  EXPECT_EQ(a_.queued(), size_t{kCount});
  EXPECT_TRUE(a_.flush(observer_));
  EXPECT_EQ(a_.queued(), 0u);
  auto got = receiveAll(b_);
  ASSERT_EQ(got.size(), size_t{kCount});
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(got[i].bytes.data()[0], i);
  EXPECT_EQ(a_.counters().sentDatagrams, uint64_t{kCount});
  EXPECT_EQ(b_.counters().receivedDatagrams, uint64_t{kCount});
}

TEST_P(UdpSocketTest, AReceiveCallTakesNoMoreThanItsLimit) {
  for (int i = 0; i < 5; ++i) a_.enqueue(datagram(b_, {1}));
  a_.flush(observer_);
  bool more = false;
  EXPECT_EQ(b_.receive(batch_, 3, more).size(), 3u);
  EXPECT_TRUE(more);
  EXPECT_EQ(b_.receive(batch_, 3, more).size(), 2u);
  EXPECT_FALSE(more);
}

TEST_P(UdpSocketTest, QueueIsBounded) {
  for (size_t i = 0; i < UdpSocket::kQueueLimit; ++i) ASSERT_TRUE(a_.enqueue(datagram(b_, {1})));
  EXPECT_TRUE(a_.full());
  size_t used = pool_.inUse();
  EXPECT_FALSE(a_.enqueue(datagram(b_, {1})));
  EXPECT_EQ(a_.counters().queueDrops, 1u);
  EXPECT_EQ(pool_.inUse(), used);
}

TEST_P(UdpSocketTest, RefusesADatagramOfTheOtherFamily) {
  UdpSocket other(3, on(loopback(!GetParam())));
  EXPECT_FALSE(a_.enqueue(datagram(other, {1})));
  EXPECT_EQ(a_.counters().queueDrops, 1u);
}

TEST_P(UdpSocketTest, SourceAddressOfTheRouteIsUsed) {
  if (!GetParam()) return;  // ::1 is the only IPv6 address of loopback
  UdpSocket any(3, on(*Address::parse("0.0.0.0")));
  Datagram d = datagram(b_, {1});
  d.route.local = *Address::parse("127.0.0.9");
  any.enqueue(std::move(d));
  EXPECT_TRUE(any.flush(observer_));
  auto got = receiveAll(b_);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from.remote.address.toString(), "127.0.0.9");
  EXPECT_EQ(got[0].from.remote.port, any.local().port);
}

TEST_P(UdpSocketTest, ForeignSourceAddressIsASendErrorAndTheRestGoesOut) {
  Datagram bad = datagram(b_, {1});
  bad.route.local = *Address::parse(GetParam() ? "192.0.2.77" : "2001:db8::77");
  Route route = bad.route;
  a_.enqueue(datagram(b_, {0}));
  a_.enqueue(std::move(bad));
  a_.enqueue(datagram(b_, {2}));
  EXPECT_CALL(observer_, onSendError(Field(&Datagram::route, route), _));
  EXPECT_TRUE(a_.flush(observer_));
  auto got = receiveAll(b_);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].bytes.data()[0], 0);
  EXPECT_EQ(got[1].bytes.data()[0], 2);
  EXPECT_EQ(a_.counters().sendErrors, 1u);
}

TEST_P(UdpSocketTest, ClosedPortIsNoError) {
  uint16_t port;
  {
    UdpSocket gone(3, on(loopback(GetParam())));
    port = gone.local().port;
  }
  for (int i = 0; i < 3; ++i) {
    Datagram d = datagram(b_, {1});
    d.route.remote.port = port;
    a_.enqueue(std::move(d));
    EXPECT_TRUE(a_.flush(observer_));
    bool more = true;
    EXPECT_TRUE(a_.receive(batch_, 64, more).empty());
  }
  EXPECT_EQ(a_.counters().sendErrors, 0u);
}

TEST_P(UdpSocketTest, DatagramLongerThanThePoolsPayloadIsCountedAndDropped) {
  PacketPool small(100, 128);
  ReceiveBatch batch(small);
  a_.enqueue(datagram(b_, std::vector<uint8_t>(101)));
  a_.enqueue(datagram(b_, std::vector<uint8_t>(100)));
  a_.flush(observer_);
  bool more = true;
  auto got = b_.receive(batch, 64, more);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes.size(), 100u);
  EXPECT_EQ(b_.counters().truncated, 1u);
}

TEST_P(UdpSocketTest, FullReceiveBufferIsCounted) {
  UniqueFd plain(::socket(AF_INET, SOCK_DGRAM, 0));
  int enabled = 1;
  if (::setsockopt(plain.get(), SOL_SOCKET, SO_RXQ_OVFL, &enabled, sizeof enabled) < 0)
    GTEST_SKIP() << "an emulator without SO_RXQ_OVFL";
  SocketOptions tiny = on(loopback(GetParam()));
  tiny.bufferBytes = 1;
  UdpSocket slow(3, tiny);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) a_.enqueue(datagram(slow, std::vector<uint8_t>(500)));
    a_.flush(observer_);
    size_t got = receiveAll(slow).size();
    EXPECT_LT(got, 100u);
    a_.enqueue(datagram(slow, {1}));  // carries the counter
    a_.flush(observer_);
    receiveAll(slow);
    EXPECT_EQ(slow.counters().overflowed + slow.counters().receivedDatagrams,
              uint64_t(101 * (round + 1)));
  }
}

TEST_P(UdpSocketTest, ExhaustedPoolStillReadsWithThePacketsKeptAtHand) {
  PacketPool small(2048, 80);
  {
    ReceiveBatch batch(small);
    bool more;
    b_.receive(batch, 64, more);  // fills the reserve
    std::vector<Packet> hoard;
    while (Packet p = small.allocate()) hoard.push_back(std::move(p));
    for (int i = 0; i < 70; ++i) a_.enqueue(datagram(b_, {uint8_t(i)}));
    a_.flush(observer_);
    size_t got = 0;
    std::vector<Packet> kept;
    do {
      for (ReceivedDatagram& r : b_.receive(batch, 10, more)) {
        EXPECT_EQ(r.bytes.data()[0], got);
        ++got;
        kept.push_back(std::move(r.bytes));
      }
    } while (more);
    EXPECT_EQ(got, 64u);
    EXPECT_EQ(b_.counters().noBuffer, 6u);
    kept.clear();
    a_.enqueue(datagram(b_, {1}));
    a_.flush(observer_);
    EXPECT_EQ(b_.receive(batch, 10, more).size(), 1u) << "packets given back are used again";
  }
}

TEST(UdpSocketErrors, TakenPortIsNamed) {
  UdpSocket first(1, on(loopback(true)));
  SocketOptions same = on(loopback(true));
  same.port = first.local().port;
  try {
    UdpSocket second(2, same);
    FAIL() << "bound twice";
  } catch (const SystemError& e) {
    EXPECT_EQ(e.code(), EADDRINUSE);
    EXPECT_THAT(e.what(), testing::HasSubstr(first.local().toString()));
    EXPECT_THAT(e.what(), testing::HasSubstr("another program"));
  }
}

TEST(UdpSocketErrors, AKernelThatDoesNotCountOverflowsCarriesDatagramsAllTheSame) {
  if (::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "an emulator without seccomp";
  onOlderKernel({{__NR_setsockopt, 2, SO_RXQ_OVFL, ENOPROTOOPT}},
                [] { EXPECT_NE(UdpSocket(1, on(loopback(true))).local().port, 0); });
}

TEST(UdpSocketErrors, AKernelWithoutIpv6IsNamedAndHasIpv4) {
  if (::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "an emulator without seccomp";
  onOlderKernel({{__NR_socket, 0, AF_INET6, EAFNOSUPPORT}}, [] {
    try {
      UdpSocket s(1, on(loopback(false)));
      FAIL() << "a socket of a family that is not there";
    } catch (const SystemError& e) {
      EXPECT_EQ(e.code(), EAFNOSUPPORT);
      EXPECT_THAT(e.what(), testing::HasSubstr("no IPv6"));
    }
    EXPECT_NE(UdpSocket(1, on(loopback(true))).local().port, 0);
  });
}

TEST(UdpSocketErrors, AnAddressThatNoInterfaceHasYetMayBeWaitedFor) {
  for (const char* absent : {"192.0.2.1", "2001:db8::1"}) {
    SocketOptions o = on(*Address::parse(absent));
    o.mayBeAbsent = true;
    EXPECT_EQ(UdpSocket(1, o).local().address, o.local);
  }
}

TEST(UdpSocketErrors, ForeignAddressAndUnknownInterfaceAreNamed) {
  EXPECT_THROW(UdpSocket(1, on(*Address::parse("192.0.2.1"))), SystemError);
  EXPECT_THROW(UdpSocket(1, on(Address{})), SystemError);
  SocketOptions o = on(*Address::parse("0.0.0.0"));
  o.interface = "nosuchif0";
  try {
    UdpSocket s(1, o);
    FAIL() << "bound to an interface that is not there";
  } catch (const SystemError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("nosuchif0"));
  }
}

}  // namespace
}  // namespace braid::udp_socket_test
