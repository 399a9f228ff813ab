// Connections that the host's packet filter would drop when they are taken over.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/network/route_plan.h"
#include "gateway/proxy/tcp_proxy.h"
#include "host/fake/fake_host.h"
#include "tests/unit/gateway/loop_lanes.h"

namespace braid::barred_streams_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BarredStreams : public testing::Test {
 protected:
  BarredStreams() {
    setLogLevel("error");
    config_.tunnel.streams.on = true;
    config_.peers.emplace_back().options.prefixes = {*Prefix::parse("10.2.0.0/24")};
    UplinkConfig uplink;
    uplink.interface = "wan0";
    config_.uplinks = {uplink};
    add(1, "lo", {"127.0.0.1/8"});
    add(2, "wan0", {"198.51.100.2/24"});
    add(3, "lan0", {"192.168.1.1/24", "fd01::1/64"});
    add(5, "braid0", {"10.9.0.2/24"});
  }
  ~BarredStreams() override { setLogLevel("info"); }

  void add(int index, const char* name, const std::vector<std::string>& addresses) {
    Link link;
    link.index = index;
    link.name = name;
    link.up = true;
    for (const std::string& text : addresses) {
      size_t slash = text.find('/');
      link.addresses.insert({*Address::parse(text.substr(0, slash)),
                             static_cast<uint8_t>(std::stoi(text.substr(slash + 1))), 0, true,
                             false, false});
    }
    host_.net().edit().setLink(link);
    host_.net().changed();
    host_.net().process(clock_.now());
  }
  void start() {
    streams_ = std::make_unique<TcpProxy>(host_, host_.net(), "braid0", lanes_, pool_, log_);
    streams_->configure(config_, interfacesOf(config_.uplinks, host_.net().table()), {},
                        clock_.now());
  }
  FakeStreamHost& tcp() { return *host_.streams(); }
  void wait(Duration time) {
    clock_.advance(time);
    while (streams_->turn(clock_.now())) {
    }
  }
  std::vector<std::string> approaches() {
    std::vector<std::string> out;
    for (const StreamApproach& each : tcp().approaches())
      out.push_back(each.interface + " " + each.source.toString());
    return out;
  }

  FakeClock clock_;
  FakeHost host_{clock_, 1};
  LogLimiter log_;
  PacketPool pool_{2048, 64};
  gateway_test::LoopLanes lanes_;
  Config config_;
  std::unique_ptr<TcpProxy> streams_;
};

TEST_F(BarredStreams, ItIsAskedForAHostOfEachLanAndFamily) {
  start();
  EXPECT_THAT(approaches(), ElementsAre("lan0 192.168.1.2", "lan0 fd01::2"))
      << "not for uplinks, the device and loopback";
  add(7, "guests", {"192.168.9.1/24", "192.168.9.129/25"});
  streams_->onChange(clock_.now());
  EXPECT_THAT(approaches(), ElementsAre("lan0 192.168.1.2", "lan0 fd01::2", "guests 192.168.9.2"));
}

TEST_F(BarredStreams, TheyAreLeftOutUntilTheFilterLetsThemIn) {
  start();
  ASSERT_NE(tcp().taking(), nullptr);
  EXPECT_THAT(tcp().taking()->barred, IsEmpty());
  const std::vector<StreamBarrier> barred{{"lan0", false, "chain INPUT of table ip filter"}};
  tcp().bar(barred);
  wait(InterceptPolicy::kLook);
  EXPECT_EQ(tcp().taking()->barred, barred);
  int changes = tcp().changes();
  wait(InterceptPolicy::kLook * 3);
  EXPECT_EQ(tcp().changes(), changes) << "the rules change only with the filter";
  tcp().bar({});
  wait(InterceptPolicy::kLook);
  EXPECT_THAT(tcp().taking()->barred, IsEmpty());
}

}  // namespace
}  // namespace braid::barred_streams_test
