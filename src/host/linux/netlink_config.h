#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/linux/netlink.h"
#include "host/network.h"

struct ifinfomsg;

namespace braid {

class Forwarding;
class NetlinkRequest;

/// Changes the host's network by rtnetlink. An object that exists already is taken over if it is
/// identical and carries Braid's mark (kBraidProtocol).
class NetlinkConfig final : public HostNetwork {
 public:
  NetlinkConfig();
  /// Calls undo() and ignores failures.
  ~NetlinkConfig() override;

  void setLinkUp(const std::string& device) override;
  void setMtu(const std::string& device, uint32_t mtu) override;
  void addAddress(const std::string& device, const InterfaceAddress& address) override;
  void removeAddress(const std::string& device, const InterfaceAddress& address) override;
  void setMaster(const std::string& device, const std::string& bridge) override;
  void addRoute(const RouteSpec& route) override;
  void addRule(const RuleSpec& rule) override;
  void removeRoute(const RouteSpec& route) override;
  void removeRule(const RuleSpec& rule) override;
  void removeStaleRoutes(uint32_t table) override;
  std::vector<Prefix> networksElsewhere(const std::string& device) override;
  void removeStaleRules(uint32_t priority, uint32_t table) override;
  void removeStaleTables(uint32_t first, uint32_t count) override;
  bool hasOtherRule(uint32_t priority, uint32_t table) override;
  void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                     const std::string& before) override;
  bool forwards(Address::Family family, const std::string& interface) override;
  void removeForwarding(Address::Family family) override;
  std::string forwardingBefore(Address::Family family) override;

  Restored restore() override;
  std::vector<std::string> undo() override;
  /// Lines that describe what undo() would undo, in the order in which it was done.
  std::vector<std::string> done() const;

 private:
  struct Step {
    std::string text;  // what was done; identifies the step
    std::function<void()> takeBack;
    std::function<bool()> again;  // repeats the step if it was undone by others; true: it was
    bool stays = false;           // undo() leaves it
  };
  void remember(std::string text, std::function<void()> takeBack, std::function<bool()> again);
  /// Reserves memory for keep() before a change, because a change must be remembered even when
  /// memory runs out.
  void makeRoom();
  void keep(Step step);
  void forget(std::string_view text);
  Step* find(std::string_view text);
  bool remembers(std::string_view text) { return find(text) != nullptr; }
  /// Evaluates the answer to a repeated request that adds something. True: it was gone and was
  /// added again.
  bool addAgain(const std::string& text, const NetlinkSocket::Answer& answer);
  /// The interface's index; 0 when there is none of that name. Throws SystemError when the kernel
  /// gives no answer. (if_nametoindex() opens a socket, and would return 0 in that case, too.)
  int findIndex(const std::string& device);
  int indexOf(const std::string& device);
  /// The interface of the route; 0 for one without.
  int indexOf(const RouteSpec& route) { return route.hasDevice() ? indexOf(route.device) : 0; }
  using FillLink = std::function<void(NetlinkRequest&, ifinfomsg&)>;
  void changeLink(const std::string& device, const std::string& text, const FillLink& fill);
  /// Like changeLink(), but does nothing when the device is gone.
  void takeBackLink(const std::string& device, const std::string& text, const FillLink& fill);
  void deleteRoute(const RouteSpec& route);
  void removeStaleRoutes(uint32_t first, uint32_t count);
  void deleteRule(const RuleSpec& rule);
  /// Braid's rules, of both families.
  std::vector<RuleSpec> rules();
  void deleteAddress(const std::string& device, const InterfaceAddress& address);
  std::string nameOf(int index);
  /// Describes the existing route (or address) that conflicts with this one. `ours`: it is
  /// identical and was left by a process of Braid.
  std::string conflicting(const RouteSpec& route, bool& ours);
  bool ruleIsOurs(const RuleSpec& rule);
  std::string conflicting(int index, const InterfaceAddress& address, bool& ours);

  NetlinkSocket socket_;
  std::vector<Step> steps_;
  std::unique_ptr<Forwarding> forwarding_[2];  ///< IPv4, IPv6; null until setForwarding()
};

}  // namespace braid
