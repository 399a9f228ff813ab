#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::sim::tcp {

/// Proportional Rate Reduction (RFC 6937) with the slow-start reduction bound: reduces the window
/// gradually to ssthresh during a fast recovery. All values are in bytes.
class Prr {
 public:
  /// Begins a reduction. `flight`: bytes sent and not acknowledged (RecoverFS).
  void begin(uint64_t flight) {
    recoverFs_ = static_cast<double>(std::max<uint64_t>(flight, 1));
    delivered_ = out_ = 0;
  }
  void onSent(uint64_t bytes) { out_ += static_cast<double>(bytes); }
  /// The window after an ACK by which `delivered` more bytes have arrived. It allows at least one
  /// segment at the beginning of the recovery.
  double window(uint64_t delivered, uint64_t pipe, double ssthresh, double mss) {
    auto now = static_cast<double>(delivered);
    auto inFlight = static_cast<double>(pipe);
    delivered_ += now;
    double send = delivered_ * ssthresh / recoverFs_ - out_;
    if (inFlight <= ssthresh)
      send = std::min(ssthresh - inFlight, std::max(delivered_ - out_, now) + mss);
    return inFlight + std::max(send, out_ > 0 ? 0 : mss);
  }

 private:
  double recoverFs_ = 1;
  double delivered_ = 0, out_ = 0;  // since the recovery began
};

}  // namespace braid::sim::tcp
