#include "simnet/tcp/rivals.h"

#include <stdexcept>
#include <string>

namespace braid::sim::tcp {

namespace {
constexpr const char* kRecoveries[] = {"current", "linux", "rack",       "rfc6675", "ns-3",
                                       "tcp",     "tlp",   "linux-3.18", "tcp-ir",  "proactive"};
constexpr const char* kControls[] = {"newreno", "cubic", "cubic-8312", "dctcp"};
}  // namespace

Options recoveryOptions(std::string_view name) {
  Options o;
  if (name == "current") return o;
  o.rackKnowsHandshake = name == "linux" || name == "rack";
  if (name == "linux") return o;
  o.tlp = false;
  if (name == "rack") return o;
  o.rack = false;
  o.growAfterRecovery = o.partialAcks = o.markAnswersLoss = name == "ns-3";
  if (name == "rfc6675" || name == "ns-3") return o;
  o.prr = false;
  o.earlyRetransmit = true;
  if (name == "tcp") return o;
  if (name == "tlp" || name == "linux-3.18") {
    o.tlp = o.fack = true;
    o.prr = name == "linux-3.18";
    return o;
  }
  if (name == "proactive") {
    o.redundancy = Redundancy::kProactive;
    return o;
  }
  if (name != "tcp-ir") throw std::invalid_argument("no recovery " + std::string(name));
  o.redundancy = Redundancy::kCorrective;
  return o;
}

std::span<const char* const> recoveryNames() {
  return kRecoveries;
}

Control controlOf(std::string_view name) {
  if (name == "newreno") return Control::kNewReno;
  if (name == "cubic") return Control::kCubic;
  if (name == "cubic-8312") return Control::kCubic8312;
  if (name == "dctcp") return Control::kDctcp;
  throw std::invalid_argument("no congestion control " + std::string(name));
}

std::span<const char* const> controlNames() {
  return kControls;
}

}  // namespace braid::sim::tcp
