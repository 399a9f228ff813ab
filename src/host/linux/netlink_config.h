#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/host_network.h"
#include "host/linux/netlink_socket.h"

struct ifinfomsg;

namespace braid {

class Forwarding;
class NetlinkRequest;

/// Changes the host's network by rtnetlink. What is there already is taken over when it is identical and
/// carries Braid's mark (kBraidProtocol).
class NetlinkConfig final : public HostNetwork {
 public:
  NetlinkConfig();
  /// undo(), with failures ignored.
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
  void removeStaleMarks(uint32_t kind) override;
  void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                     const std::string& before) override;
  void removeForwarding(Address::Family family) override;
  std::string forwardingBefore(Address::Family family) override;

  Restored restore() override;
  std::vector<std::string> undo() override;
  /// Lines that describe what undo() would take back, in the order of doing.
  std::vector<std::string> done() const;

 private:
  struct Step {
    std::string text;  // what was done; names the step
    std::function<void()> takeBack;
    std::function<bool()> again;  // true: it had to be done again
  };
  void remember(std::string text, std::function<void()> takeBack, std::function<bool()> again);
  /// Room for keep(): what was done at the host must be remembered even when memory ends.
  void makeRoom();
  void keep(Step step);
  void forget(std::string_view text);
  Step* find(std::string_view text);
  bool remembers(std::string_view text) { return find(text) != nullptr; }
  /// A request that adds something, made again. True: it was gone.
  bool addAgain(const std::string& text, const NetlinkSocket::Answer& answer);
  /// The interface's index, 0 when there is none of that name. Throws SystemError when the kernel does not say:
  /// if_nametoindex(), which opens a socket for it, would give 0 then too.
  int findIndex(const std::string& device);
  int indexOf(const std::string& device);
  using FillLink = std::function<void(NetlinkRequest&, ifinfomsg&)>;
  void changeLink(const std::string& device, const std::string& text, const FillLink& fill);
  /// changeLink(), which is no failure when the device is gone.
  void takeBackLink(const std::string& device, const std::string& text, const FillLink& fill);
  void deleteRoute(const RouteSpec& route);
  void deleteRule(const RuleSpec& rule);
  void deleteAddress(const std::string& device, const InterfaceAddress& address);
  std::string nameOf(int index);
  /// The route (rule, address) in the way of this one, described; `ours` when it is identical and left over
  /// from us.
  std::string conflicting(const RouteSpec& route, bool& ours);
  bool ruleIsOurs(const RuleSpec& rule);
  std::string conflicting(int index, const InterfaceAddress& address, bool& ours);

  NetlinkSocket socket_;
  std::vector<Step> steps_;
  std::unique_ptr<Forwarding> forwarding_[2];  ///< IPv4, IPv6; null: not asked for
};

}  // namespace braid
