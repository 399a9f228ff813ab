#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/datagram_socket.h"
#include "host/network.h"

namespace braid {

/// A datagram on the wire between two fake hosts.
struct FakeDatagram {
  Endpoint from, to;
  Ecn ecn = Ecn::kNotEct;
  std::vector<uint8_t> bytes;
};

/// A socket without a network: it accepts or refuses datagrams as the test says.
class FakeDatagramSocket final : public DatagramSocket {
 public:
  using OnSent = std::function<void(FakeDatagram&&)>;

  FakeDatagramSocket(SocketId id, const SocketOptions& options, SocketCallbacks callbacks,
                     OnSent onSent, std::function<void()> onClosed);
  ~FakeDatagramSocket() override { onClosed_(); }

  const SocketOptions& options() const { return options_; }

  /// IP packets of more than `mtu` bytes are refused with EMSGSIZE.
  void setMtu(size_t mtu) { mtu_ = mtu; }
  /// Every datagram is refused with this errno from now on; 0: they are accepted again.
  void refuse(int error) { error_ = error; }
  /// The send buffer has room for `datagrams` more. The socket becomes writable, if somebody waits
  /// for that.
  void setRoom(size_t datagrams);
  /// Simulates that a datagram arrives.
  void put(const FakeDatagram& datagram);
  /// Simulates a host that merges `datagrams` at a time into a message, and damages those behind
  /// the first, until it is told not to merge.
  void mergeBadly(size_t datagrams) { badlyMerged_ = datagrams; }

  std::span<ReceivedDatagram> receive(ReceiveBatch& batch, size_t limit, bool& more) override;

 protected:
  int send(size_t count) override;
  void watchWritable(bool on) override { watched_ = on; }
  void setMerging(bool on) override {
    if (!on) badlyMerged_ = 1;
  }

 private:
  int refusal(const Datagram& datagram) const;

  SocketOptions options_;
  SocketCallbacks callbacks_;
  OnSent onSent_;
  std::function<void()> onClosed_;
  std::deque<FakeDatagram> in_;
  size_t mtu_ = SIZE_MAX;
  size_t room_ = SIZE_MAX;
  int error_ = 0;
  bool watched_ = false;
  size_t badlyMerged_ = 1;
};

/// A host network whose links and addresses are set by the test. What the gateway configures is
/// kept as lines of text.
class FakeHostNetwork final : public HostNetwork, public NetworkMonitor {
 public:
  /// The host's links, addresses and default routes, for editing. Call changed() afterwards to
  /// notify the watcher.
  NetworkTable& edit() { return table_; }
  void changed();
  void watch(std::function<void()> onChange) { onChange_ = std::move(onChange); }

  /// What the gateway has configured: "route ...", "IPv4 rule ...", "address 10.0.0.1/24 on
  /// braid0", "braid0 up".
  const std::set<std::string>& configured() const { return configured_; }
  /// Simulates that others remove this line of configured(). Call changed() afterwards to notify
  /// the watcher.
  void takeAway(const std::string& line);
  /// Simulates an overrun of netlink: changes are missed from now on, and everything is read again
  /// at this time.
  void missUntil(Time then) { readAt_ = then; }
  /// How often restore() was called.
  int restores() const { return restores_; }

  /// How many routes and rules were ever added.
  int adds() const { return adds_; }
  /// Sets whether adding routes and rules, and restoring, is refused from now on.
  void refuse(bool on) { refuse_ = on; }
  /// Only these lines are refused from now on: adding, removing and restoring them fails.
  void refuseLines(std::set<std::string> lines) { refused_ = std::move(lines); }
  /// The next `count` changes of an MTU are refused.
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
  void removeStaleRules(uint32_t priority, uint32_t table) override {
    staleRemovals_.insert({priority, table});
  }
  void removeStaleTables(uint32_t first, uint32_t count) override {
    staleTables_.insert({first, count});
  }
  /// The arguments of each call of removeStaleTables().
  const std::set<std::pair<uint32_t, uint32_t>>& staleTables() const { return staleTables_; }
  bool hasOtherRule(uint32_t, uint32_t) override { return hasOtherRule_; }
  void setHasOtherRule(bool on) { hasOtherRule_ = on; }
  /// Priority and table of each call of removeStaleRules().
  const std::multiset<std::pair<uint32_t, uint32_t>>& staleRemovals() const {
    return staleRemovals_;
  }
  std::vector<Prefix> networksElsewhere(const std::string&) override { return elsewhere_; }
  void setElsewhere(std::vector<Prefix> networks) { elsewhere_ = std::move(networks); }
  void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                     const std::string& before) override;
  /// True unless setDropsForwarded(true) was called.
  bool forwards(Address::Family, const std::string&) override { return !dropsForwarded_; }
  void setDropsForwarded(bool on) { dropsForwarded_ = on; }
  void removeForwarding(Address::Family family) override;
  /// "1 lan0" if the host does not forward, or did not before setForwarding().
  std::string forwardingBefore(Address::Family family) override;
  /// Simulates that the host forwards already, on its own or because a process of Braid was killed.
  void setForwards(bool on) { forwards_ = on; }
  /// The `hosts` of the last setForwarding().
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
  std::multiset<std::pair<uint32_t, uint32_t>> staleRemovals_;
  std::set<std::pair<uint32_t, uint32_t>> staleTables_;
  bool hasOtherRule_ = false;
  bool refuse_ = false;
  int refusedMtus_ = 0;
  bool forwards_ = false;
  bool dropsForwarded_ = false;
  std::map<Address::Family, std::string> ownForwarding_;
  std::vector<std::string> forwardingHosts_;
  std::vector<Prefix> elsewhere_;
};

}  // namespace braid
