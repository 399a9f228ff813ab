#include "host/datagram_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "host/fake/fake_network.h"

namespace braid::datagram_socket_test {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

class MockObserver : public SendObserver {
 public:
  MOCK_METHOD(void, onSendError, (const Datagram&, int), (override));
  MOCK_METHOD(void, onTooBig, (const Datagram&), (override));
};

// Behaviour that all sockets share, independent of the host.
class DatagramSocketTest : public testing::Test {
 protected:
  static SocketOptions options() {
    SocketOptions o;
    o.local = *Address::parse("192.0.2.1");
    return o;
  }
  void enqueue(uint8_t mark, size_t size = 10) {
    ASSERT_TRUE(socket_.enqueue(datagram(mark, size)));
  }
  Datagram datagram(uint8_t mark, size_t size = 10) {
    Datagram d;
    d.route = {1, {}, remote_};
    d.bytes = pool_.copy(std::vector<uint8_t>(size, mark));
    return d;
  }
  std::vector<int> takeSent() {
    std::vector<int> marks;
    for (const FakeDatagram& d : sent_) marks.push_back(d.bytes[0]);
    sent_.clear();
    return marks;
  }

  PacketPool pool_{2000, 1024};
  Endpoint remote_ = *Endpoint::parse("198.51.100.1:4433");
  testing::StrictMock<MockObserver> observer_;
  std::vector<FakeDatagram> sent_;
  int writable_ = 0;
  FakeDatagramSocket socket_{1,
                             options(),
                             {[] {}, [this] { ++writable_; }},
                             [this](FakeDatagram&& d) { sent_.push_back(std::move(d)); },
                             [] {}};
};

TEST_F(DatagramSocketTest, SendsItsQueueInOrderAndGivesThePacketsBack) {
  for (uint8_t i = 0; i < 200; ++i) enqueue(i);
  EXPECT_TRUE(socket_.flush(observer_));
  std::vector<int> marks = takeSent();
  ASSERT_EQ(marks.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(marks[i], i);
  EXPECT_EQ(socket_.counters().sentDatagrams, 200u);
  EXPECT_EQ(socket_.counters().sentBytes, 2000u);
  EXPECT_EQ(pool_.inUse(), 0u);
}

TEST_F(DatagramSocketTest, AFullSendBufferKeepsTheRestUntilThereIsRoom) {
  socket_.setRoom(2);
  for (uint8_t i = 0; i < 5; ++i) enqueue(i);
  EXPECT_FALSE(socket_.flush(observer_));
  EXPECT_TRUE(socket_.blocked());
  EXPECT_THAT(takeSent(), ElementsAre(0, 1));
  EXPECT_EQ(socket_.counters().blocked, 1u);
  socket_.setRoom(100);
  EXPECT_EQ(writable_, 1);
  EXPECT_TRUE(socket_.flush(observer_));
  EXPECT_FALSE(socket_.blocked());
  EXPECT_THAT(takeSent(), ElementsAre(2, 3, 4));
  socket_.setRoom(100);
  EXPECT_EQ(writable_, 1) << "nobody waits any more";
}

TEST_F(DatagramSocketTest, ATooBigDatagramIsReportedWithItsSizeAndTheRestGoesOut) {
  socket_.setMtu(1500);
  enqueue(0);
  enqueue(1, 1473);
  enqueue(2, 1472);
  EXPECT_CALL(observer_, onTooBig(_)).WillOnce([](const Datagram& d) {
    EXPECT_EQ(d.bytes.size(), 1473u);
  });
  EXPECT_TRUE(socket_.flush(observer_));
  EXPECT_THAT(takeSent(), ElementsAre(0, 2));
  EXPECT_EQ(socket_.counters().tooBig, 1u);
}

TEST_F(DatagramSocketTest, ARefusalIsReportedForEachDatagram) {
  socket_.refuse(ENETUNREACH);
  enqueue(0);
  enqueue(1);
  EXPECT_CALL(observer_, onSendError(Field(&Datagram::route, Route{1, {}, remote_}), ENETUNREACH))
      .Times(2);
  EXPECT_TRUE(socket_.flush(observer_));
  EXPECT_EQ(socket_.counters().sendErrors, 2u);
}

TEST_F(DatagramSocketTest, LackOfMemoryIsCountedOnly) {
  socket_.refuse(ENOBUFS);
  enqueue(0);
  EXPECT_TRUE(socket_.flush(observer_));
  EXPECT_EQ(socket_.counters().noMemory, 1u);
  EXPECT_EQ(socket_.counters().sendErrors, 1u) << "it is among those refused";
}

TEST_F(DatagramSocketTest, APendingErrorThatNeverEndsIsOneOfTheRoute) {
  socket_.refuse(ECONNREFUSED);
  enqueue(0);
  EXPECT_CALL(observer_, onSendError(_, ECONNREFUSED));
  EXPECT_TRUE(socket_.flush(observer_));
}

TEST_F(DatagramSocketTest, TheQueueIsBoundedAndTakesItsOwnFamilyOnly) {
  for (size_t i = 0; i < DatagramSocket::kQueueLimit; ++i) enqueue(1);
  EXPECT_TRUE(socket_.full());
  EXPECT_FALSE(socket_.enqueue(datagram(1)));
  EXPECT_TRUE(socket_.flush(observer_));
  Datagram other = datagram(1);
  other.route.remote = *Endpoint::parse("[2001:db8::1]:4433");
  EXPECT_FALSE(socket_.enqueue(std::move(other)));
  EXPECT_EQ(socket_.counters().queueDrops, 2u);
  EXPECT_EQ(pool_.inUse(), 0u);
}

TEST_F(DatagramSocketTest, ABatchTakesNoMoreThanItsLimitAndWhatFits) {
  PacketPool small(100, 128);
  ReceiveBatch batch(small);
  for (size_t size : {1, 101, 100, 2}) {
    socket_.put({remote_, socket_.local(), Ecn::kCe, std::vector<uint8_t>(size)});
  }
  bool more = false;
  auto got = socket_.receive(batch, 3, more);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_TRUE(more);
  EXPECT_EQ(got[0].from, (Route{1, socket_.local().address, remote_}));
  EXPECT_EQ(got[0].ecn, Ecn::kCe);
  EXPECT_EQ(got[1].bytes.size(), 100u);
  EXPECT_EQ(socket_.receive(batch, 3, more).size(), 1u);
  EXPECT_FALSE(more);
  EXPECT_EQ(socket_.counters().truncated, 1u);
}

TEST(ReceiveBatchTest, KeepsPacketsAtHandWhenThePoolIsExhausted) {
  PacketPool pool(100, ReceiveBatch::kSize + 10);
  ReceiveBatch batch(pool);
  EXPECT_EQ(batch.prepare(10), 10u);
  std::vector<Packet> hoard;
  while (Packet p = pool.allocate()) hoard.push_back(std::move(p));
  std::vector<Packet> kept;
  for (size_t i = 0; i < ReceiveBatch::kSize; ++i) {
    ASSERT_GE(batch.prepare(1), 1u) << i;
    batch.take(0, 5, {}, Ecn::kNotEct);
    ASSERT_EQ(batch.received().size(), 1u);
    kept.push_back(std::move(batch.received()[0].bytes));
  }
  EXPECT_EQ(batch.prepare(1), 0u);
  EXPECT_THAT(batch.received(), IsEmpty());
  kept.pop_back();
  EXPECT_EQ(batch.prepare(1), 1u) << "a packet that came back is used again";
}

}  // namespace
}  // namespace braid::datagram_socket_test
