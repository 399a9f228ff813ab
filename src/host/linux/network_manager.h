#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/linux/loop.h"
#include "inet/addresses.h"

namespace braid {

/// Asks NetworkManager over D-Bus for the DNS servers of its interfaces. It writes them into no
/// file that names the interface.
class NetworkManager {
 public:
  /// By the interface's name; IPv4 servers come first.
  using Servers = std::map<std::string, std::vector<Address>>;
  using OnServers = std::function<void(const Servers&)>;
  /// How long an answer is waited for. Chosen: NetworkManager needs a few milliseconds.
  static constexpr Duration kPatience = 2s;

  explicit NetworkManager(Loop& loop);
  ~NetworkManager();
  NetworkManager(const NetworkManager&) = delete;
  NetworkManager& operator=(const NetworkManager&) = delete;

  /// `onServers` is called once, on the loop, and never from within ask(). The servers are empty
  /// when NetworkManager does not run, does not answer within kPatience, or refuses to.
  void ask(OnServers onServers);

 private:
  class Question;
  void finish();

  Loop& loop_;
  std::vector<OnServers> waiting_;
  std::unique_ptr<Question> question_;  ///< in progress
  CoarseTimer done_;
};

}  // namespace braid
