#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/host.h"
#include "host/linux/loop.h"

namespace braid {

/// Asks over sockets that are bound to the uplink's interface and address, and marked, so that no
/// route into the tunnel leads them away.
class LinuxWebProbe final : public WebProbe {
 public:
  /// `onAnswer` is called on the loop, never from within request(). Throws SystemError.
  LinuxWebProbe(Loop& loop, OnAnswer onAnswer);
  /// Gives up the requests in progress.
  ~LinuxWebProbe() override;
  LinuxWebProbe(const LinuxWebProbe&) = delete;
  LinuxWebProbe& operator=(const LinuxWebProbe&) = delete;

  void request(const LookupWay& way, const Address& server) override;

 private:
  class Call;
  void deliver();

  Loop& loop_;
  OnAnswer onAnswer_;
  std::map<std::pair<std::string, Address>, std::unique_ptr<Call>> calls_;  ///< by uplink, server
  Timer done_;  ///< set when a call has its answer, or is to be given up
};

}  // namespace braid
