#include "gateway/uplinks/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "host/fake/fake_host.h"
#include "host/system.h"

namespace braid::listeners_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Endpoint kAny4 = *Endpoint::parse("0.0.0.0:4433"), kAny6 = *Endpoint::parse("[::]:4433"),
               kOther4 = *Endpoint::parse("0.0.0.0:4434");

class ListenersTest : public testing::Test, private SendObserver {
 protected:
  ListenersTest() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(log_);
    auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_pattern("%v");
    spdlog::set_default_logger(logger);
  }
  ~ListenersTest() override { spdlog::set_default_logger(before_); }
  void onSendError(const Datagram&, int) override {}
  void onTooBig(const Datagram&) override {}

  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream log_;
  FakeClock clock_;
  FakeHost host_{clock_, 1};
  PacketPool pool_{1500, 64};
  SocketTable sockets_{host_, pool_, false, *this, [](auto) { return size_t{0}; }};
  SocketIds ids_;
  Listeners listeners_{sockets_, ids_};
};

TEST_F(ListenersTest, AFamilyThatTheKernelLacksIsLeftOutAndNamed) {
  host_.refuseLocal({kAny6.address}, EAFNOSUPPORT);
  listeners_.open({kAny4, kAny6});
  EXPECT_THAT(listeners_.names(), ElementsAre("0.0.0.0:4433"));
  EXPECT_FALSE(listeners_.idOf(kAny6));
  EXPECT_EQ(host_.sockets().size(), 1u);
  EXPECT_EQ(log_.str(), "nobody can come to [::]:4433: refused ::\n");
  listeners_.keepOnly({kAny4, kAny6});
  EXPECT_THAT(listeners_.names(), ElementsAre("0.0.0.0:4433"));
}

TEST_F(ListenersTest, AnotherReloadOpensWhatWasLeftOut) {
  host_.refuseLocal({kAny6.address}, EAFNOSUPPORT);
  listeners_.open({kAny4, kAny6});
  host_.refuseLocal({});
  listeners_.open({kAny4, kAny6});
  EXPECT_THAT(listeners_.names(), ElementsAre("0.0.0.0:4433", "[::]:4433"));
}

TEST_F(ListenersTest, WhereNothingElseIsLeftItIsAMistake) {
  host_.refuseLocal({kAny6.address}, EAFNOSUPPORT);
  EXPECT_THROW(listeners_.open({kAny6}), SystemError);
  EXPECT_THAT(listeners_.names(), IsEmpty());
  EXPECT_EQ(log_.str(), "");
}

// At boot the daemon may be earlier than a DHCP client.
TEST_F(ListenersTest, AnAddressThatNoInterfaceHasYetIsWaitedFor) {
  const Endpoint own = *Endpoint::parse("192.0.2.5:4433");
  host_.refuseLocal({own.address});
  listeners_.open({kOther4, own});
  EXPECT_THAT(listeners_.names(), ElementsAre("0.0.0.0:4434", "192.0.2.5:4433"));
  EXPECT_EQ(log_.str(),
            "no interface has the address of 192.0.2.5:4433 yet: nobody can come there until one "
            "has\n");
  log_.str("");
  listeners_.open({own});
  EXPECT_EQ(log_.str(), "") << "said once";
  EXPECT_EQ(host_.sockets().size(), 2u);
}

TEST_F(ListenersTest, AnyOtherRefusalTakesAllOfThemBack) {
  host_.refuseLocal({kAny6.address}, EADDRINUSE);
  listeners_.open({kOther4});
  EXPECT_THROW(listeners_.open({kAny4, kAny6}), SystemError);
  EXPECT_THAT(listeners_.names(), ElementsAre("0.0.0.0:4434"));
  EXPECT_EQ(host_.sockets().size(), 1u);
  EXPECT_EQ(log_.str(), "");
}

}  // namespace
}  // namespace braid::listeners_test
