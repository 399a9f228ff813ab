#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/host_network.h"
#include "host/network_monitor.h"

namespace braid {

/// Links and addresses as a test says; what a gateway configures is kept as lines.
class FakeHostNetwork final : public HostNetwork, public NetworkMonitor {
 public:
  /// The host's links, addresses and default routes, to be edited; then changed() tells who watches.
  NetworkTable& edit() { return table_; }
  void changed();
  void watch(std::function<void()> onChange) { onChange_ = std::move(onChange); }

  /// What is configured now: "route ...", "IPv4 rule ...", "address 10.0.0.1/24 on braid0", "braid0 up".
  const std::set<std::string>& configured() const { return configured_; }
  /// Others take this line of configured() away; then changed() tells who watches.
  void takeAway(const std::string& line);
  /// Changes are missed from now on, and read anew at this time, as after an overrun of netlink.
  void missUntil(Time then) { readAt_ = then; }
  /// How often restore() was called.
  int restores() const { return restores_; }

  /// How many routes and rules were ever added.
  int adds() const { return adds_; }
  /// Whether routes and rules, and restoring, are refused from now on.
  void refuse(bool on) { refuse_ = on; }
  /// These lines alone are refused from now on: to add them, to remove them and to put them back.
  void refuseLines(std::set<std::string> lines) { refused_ = std::move(lines); }
  /// How many changes of an MTU are refused from now on.
  void refuseMtus(int count) { refusedMtus_ = count; }

  const NetworkTable& table() const override { return told_; }
  std::vector<NetworkChange> process(Time now) override;
  Time deadline() const override { return readAt_; }

  void setLinkUp(const std::string& device) override;
  void setMtu(const std::string& device, uint32_t mtu) override;
  void addAddress(const std::string& device, const InterfaceAddress& address) override;
  void removeAddress(const std::string& device, const InterfaceAddress& address) override;
  void setMaster(const std::string& device, const std::string& bridge) override;
  void addRoute(const RouteSpec& route) override { add(route.toString()); }
  void addRule(const RuleSpec& rule) override { add(rule.toString()); }
  void removeRoute(const RouteSpec& route) override { remove(route.toString()); }
  void removeRule(const RuleSpec& rule) override { remove(rule.toString()); }
  void removeStaleRoutes(uint32_t) override {}
  void removeStaleMarks(uint32_t) override { ++staleRemovals_; }
  /// How often removeStaleMarks() was called.
  int staleRemovals() const { return staleRemovals_; }
  std::vector<Prefix> networksElsewhere(const std::string&) override { return elsewhere_; }
  void setElsewhere(std::vector<Prefix> networks) { elsewhere_ = std::move(networks); }
  void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                     const std::string& before) override;
  void removeForwarding(Address::Family family) override;
  /// "1 lan0" where it does not forward, or did not.
  std::string forwardingBefore(Address::Family family) override;
  /// The host forwards already, by itself or because a process of ours was killed.
  void setForwards(bool on) { forwards_ = on; }
  /// What setForwarding() was told of the last time.
  const std::vector<std::string>& forwardingHosts() const { return forwardingHosts_; }
  Restored restore() override;
  std::vector<std::string> undo() override;

 private:
  void add(const std::string& line);
  void set(const std::string& line);
  void remove(const std::string& line);
  bool refuses(const std::string& line) const { return refuse_ || refused_.contains(line); }
  NetworkTable table_, told_;
  std::function<void()> onChange_;
  std::set<std::string> configured_, wanted_, refused_;
  Time readAt_ = kNever;
  int restores_ = 0;
  int adds_ = 0;
  int staleRemovals_ = 0;
  bool refuse_ = false;
  int refusedMtus_ = 0;
  bool forwards_ = false;
  std::map<Address::Family, std::string> ownForwarding_;
  std::vector<std::string> forwardingHosts_;
  std::vector<Prefix> elsewhere_;
};

}  // namespace braid
