// Which interfaces may be LANs and uplinks, decided from the kernel's messages. The hosts are those
// of real users.

#include "ctl/join/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "host/linux/netlink.h"
#include "host/linux/netlink_monitor.h"

namespace braid::outward_links_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Facts {
  std::string kind{};
  std::string master{}, lower{};  ///< names of interfaces that are there
  int space = -1;                 ///< namespace of the lower interface
  uint16_t hardware = ARPHRD_ETHER;
};

/// A host as rtnetlink describes it. The interface with index INDEX has the network
/// 10.INDEX.0.0/24.
class Host {
 public:
  Host& add(const std::string& name, const Facts& facts = {}) {
    int index = static_cast<int>(names_.size()) + 1;
    names_.push_back(name);
    NetlinkRequest m(RTM_NEWLINK, 0);
    auto& body = m.body<ifinfomsg>();
    body.ifi_index = index;
    body.ifi_type = facts.hardware;
    body.ifi_flags = IFF_UP | IFF_LOWER_UP;
    m.put(IFLA_IFNAME, name);
    m.put(IFLA_OPERSTATE, uint8_t{IF_OPER_UP});
    if (!facts.master.empty()) m.put(IFLA_MASTER, static_cast<uint32_t>(indexOf(facts.master)));
    if (!facts.lower.empty()) m.put(IFLA_LINK, static_cast<uint32_t>(indexOf(facts.lower)));
    if (facts.space >= 0) {
      m.put(IFLA_LINK,
            uint32_t{2});  // a number of the other namespace, which may be one of this as well
      m.put(IFLA_LINK_NETNSID, static_cast<uint32_t>(facts.space));
    }
    if (!facts.kind.empty()) {
      nlattr* nest = mnl_attr_nest_start(&m.header(), IFLA_LINKINFO);
      m.put(IFLA_INFO_KIND, facts.kind);
      if (!facts.master.empty()) m.put(IFLA_INFO_SLAVE_KIND, std::string("bridge"));
      mnl_attr_nest_end(&m.header(), nest);
    }
    applyNetlink(m.header(), table_);
    InterfaceAddress own{*Address::parse("10." + std::to_string(index) + ".0.1"), 24};
    applyNetlink(addressRequest(RTM_NEWADDR, own, index).header(), table_);
    return *this;
  }
  Host& route(const std::string& name, uint32_t metric) {
    RouteSpec all;
    all.destination.address.family = Address::Family::kV4;
    all.metric = metric;
    applyNetlink(routeRequest(RTM_NEWROUTE, all, indexOf(name)).header(), table_);
    return *this;
  }
  std::vector<std::string> uplinks() const { return findUplinks(table_, "braid0"); }
  std::vector<std::string> lans() const {
    std::vector<std::string> out;
    for (const Prefix& lan : findLans(table_, uplinks(), "braid0"))
      out.push_back(names_.at(lan.address.bytes[1] - 1u));
    return out;
  }

 private:
  int indexOf(const std::string& name) const { return table_.find(name)->index; }
  NetworkTable table_;
  std::vector<std::string> names_;
};

TEST(OutwardLinks, ARoutersBridgesAreLans) {
  Host host;
  host.add("lo", {.hardware = ARPHRD_LOOPBACK})
      .add("eth0")
      .add("wan", {.kind = "dsa", .lower = "eth0"});
  host.route("wan", 0);
  host.add("br-lan", {.kind = "bridge"})
      .add("lan1", {.kind = "dsa", .master = "br-lan", .lower = "eth0"});
  host.add("phy0-ap0", {.master = "br-lan"});
  host.add("br-guest", {.kind = "bridge"}).add("phy0-ap1", {.master = "br-guest"});
  host.add("br-empty", {.kind = "bridge"});
  EXPECT_THAT(host.uplinks(), ElementsAre("wan"));
  EXPECT_THAT(host.lans(), ElementsAre("eth0", "br-lan", "br-guest"));
}

TEST(OutwardLinks, ThoseOfContainersAndVirtualMachinesAreNot) {
  Host host;
  host.add("eno1").route("eno1", 100);
  for (const char* bridge : {"docker0", "br-4f1c", "podman0", "incusbr0", "lxdbr0", "cni0"}) {
    host.add(bridge, {.kind = "bridge"});
    host.add(std::string("veth-") + bridge, {.kind = "veth", .master = bridge, .space = 0});
  }
  host.add("virbr0", {.kind = "bridge"}).add("vnet0", {.kind = "tun", .master = "virbr0"});
  host.add("cali1", {.kind = "veth", .space = 1}).add("lxc1", {.kind = "netkit", .space = 1});
  host.add("virbr1", {.kind = "bridge"}).add("virbr1-nic", {.kind = "dummy", .master = "virbr1"});
  EXPECT_THAT(host.lans(), IsEmpty());
}

// With one more port the same bridge is a LAN, and its virtual machines belong to the LAN's hosts.
TEST(OutwardLinks, ABridgeIsALanByWhatItsPortsLeadTo) {
  std::map<std::string, Facts> ports{
      {"nic", {}},
      {"dsa", {.kind = "dsa", .lower = "eth9"}},
      {"vlan", {.kind = "vlan", .lower = "eth9"}},
      {"bond", {.kind = "bond"}},
      {"infiniband", {.kind = "ipoib", .hardware = ARPHRD_INFINIBAND}},
      {"veth", {.kind = "veth", .space = 0}},
      {"veth here", {.kind = "veth", .lower = "eth9"}},
      {"tap", {.kind = "tun"}},
      {"macvtap", {.kind = "macvtap", .lower = "eth9"}},
      {"vxlan", {.kind = "vxlan", .lower = "eth9"}},
      {"gretap", {.kind = "gretap"}},
      {"dummy", {.kind = "dummy"}},
      {"ifb", {.kind = "ifb"}},
      {"vlan on tap", {.kind = "vlan", .lower = "vnet9"}},
      {"bond of taps", {.kind = "bond"}}};
  for (auto [name, facts] : ports) {
    Host host;
    host.add("eth9").route("eth9", 1).add("vnet9", {.kind = "tun"}).add("br0", {.kind = "bridge"});
    host.add("vnet0", {.kind = "tun", .master = "br0"});
    facts.master = "br0";
    host.add("port", facts);
    if (name == "bond") host.add("eth8", {.master = "port"});
    if (name == "bond of taps") host.add("vnet8", {.kind = "tun", .master = "port"});
    bool leads =
        name == "nic" || name == "dsa" || name == "vlan" || name == "bond" || name == "infiniband";
    EXPECT_EQ(host.lans(), leads ? std::vector<std::string>{"br0"} : std::vector<std::string>{})
        << name;
  }
}

TEST(OutwardLinks, EachKindOnItsOwn) {
  std::map<std::string, bool> kinds{
      {"", true},        {"dsa", true},        {"vlan", true},         {"macsec", true},
      {"bridge", false}, {"bond", false},      {"team", false},        {"veth", false},
      {"tun", false},    {"wireguard", false}, {"dummy", false},       {"ifb", false},
      {"vrf", false},    {"vxlan", false},     {"geneve", false},      {"gretap", false},
      {"ipvlan", false}, {"macvlan", false},   {"netkit", false},      {"macvtap", false},
      {"ppp", false},    {"wwan", false},      {"openvswitch", false}, {"of next year", false}};
  for (const auto& [kind, is] : kinds) {
    Host host;
    host.add("eth9").route("eth9", 1).add("x0", {.kind = kind, .lower = "eth9"});
    EXPECT_EQ(host.lans(), is ? std::vector<std::string>{"x0"} : std::vector<std::string>{})
        << kind;
  }
}

TEST(OutwardLinks, EachHardwareOfANic) {
  std::map<uint16_t, bool> types{{ARPHRD_ETHER, true},     {ARPHRD_INFINIBAND, true},
                                 {ARPHRD_LOOPBACK, false}, {ARPHRD_PPP, false},
                                 {ARPHRD_NONE, false},     {ARPHRD_SIT, false},
                                 {ARPHRD_TUNNEL, false},   {ARPHRD_IPGRE, false},
                                 {ARPHRD_RAWIP, false},    {ARPHRD_CAN, false}};
  for (const auto& [type, is] : types) {
    Host host;
    host.add("x0", {.hardware = type});
    EXPECT_EQ(host.lans(), is ? std::vector<std::string>{"x0"} : std::vector<std::string>{})
        << type;
  }
}

TEST(OutwardLinks, VlansAndBondsAreAsWhatTheyAreOf) {
  Host host;
  host.add("eth0").route("eth0", 1);
  host.add("eth0.10", {.kind = "vlan", .lower = "eth0"});
  host.add("bond0", {.kind = "bond"})
      .add("eth1", {.master = "bond0"})
      .add("eth2", {.master = "bond0"});
  host.add("team0", {.kind = "team"}).add("eth3", {.master = "team0"});
  host.add("bond0.20", {.kind = "vlan", .lower = "bond0"});
  host.add("br-lan", {.kind = "bridge"}).add("lan1", {.kind = "dsa", .master = "br-lan"});
  host.add("br-lan.30", {.kind = "vlan", .lower = "br-lan"});
  host.add("docker0", {.kind = "bridge"}).add("docker0.40", {.kind = "vlan", .lower = "docker0"});
  host.add("red", {.kind = "vrf"}).add("eth4", {.master = "red"});
  EXPECT_THAT(host.lans(),
              ElementsAre("eth0.10", "bond0", "team0", "bond0.20", "br-lan", "br-lan.30"));
}

// The kernel's interface numbers cannot form a circle, but reading them must end in any case.
TEST(OutwardLinks, ACircleEnds) {
  NetworkTable table;
  for (int index : {1, 2}) {
    Link& link = table.link(index);
    link.index = index;
    link.hardware = ARPHRD_ETHER;
    link.kind = "vlan";
    link.lower = 3 - index;
  }
  EXPECT_FALSE(OutwardLinks(table).mayBeLan(table.link(1)));
}

TEST(OutwardLinks, InAContainerAVethStandsForANic) {
  Host host;
  host.add("eth0", {.kind = "veth", .space = 0}).route("eth0", 1);
  host.add("eth1", {.kind = "veth", .space = 0}).add("mac0", {.kind = "macvlan", .space = 0});
  host.add("own", {.kind = "veth"}).add("other", {.kind = "veth", .lower = "own"});
  host.add("br-lan", {.kind = "bridge"})
      .add("eth2", {.kind = "veth", .master = "br-lan", .space = 0});
  host.add("docker0", {.kind = "bridge"})
      .add("veth1", {.kind = "veth", .master = "docker0", .space = 1});
  EXPECT_THAT(host.uplinks(), ElementsAre("eth0"));
  EXPECT_THAT(host.lans(), ElementsAre("eth1", "mac0", "br-lan"));
  host.add("eno1");
  EXPECT_THAT(host.lans(), ElementsAre("eno1")) << "with a NIC it is no container";
}

TEST(OutwardLinks, ATunnelIsAnUplinkOnlyWhereThereIsNothingElse) {
  for (const char* kind : {"tun", "wireguard", "sit", "ip6tnl", "gre", "xfrm", "dummy"}) {
    Host host;
    host.add("x0", {.kind = kind, .hardware = ARPHRD_NONE}).route("x0", 1);
    EXPECT_THAT(host.uplinks(), ElementsAre("x0")) << kind;
    host.add("ppp0", {.kind = "ppp", .hardware = ARPHRD_PPP}).route("ppp0", 20);
    host.add("wwan0", {.kind = "wwan", .hardware = ARPHRD_RAWIP}).route("wwan0", 700);
    EXPECT_THAT(host.uplinks(), ElementsAre("ppp0", "wwan0")) << kind;
    EXPECT_THAT(host.lans(), IsEmpty()) << kind;
  }
}

}  // namespace
}  // namespace braid::outward_links_test
