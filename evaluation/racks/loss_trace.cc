#include "evaluation/racks/loss_trace.h"

#include <algorithm>
#include <iterator>

namespace braid::sim {

namespace {
constexpr size_t kBins = 10;
constexpr double kLarge = 0.3;  // "more than 30 % of the window"
constexpr double kRounding = 1e-9;

size_t binOf(double share) {
  return std::min(static_cast<size_t>(share * kBins + kRounding), kBins - 1);
}
}  // namespace

LossTrace::LossTrace(tcp::Endpoint& endpoint) : endpoint_(endpoint) {
  endpoint.watch([this](const tcp::DataSegment& s) { onSegment(s); });
}

LossTrace::Window LossTrace::windowOf(uint64_t offset) const {
  auto at = windows_.upper_bound(offset);
  return at == windows_.begin() ? Window{} : std::prev(at)->second;
}

void LossTrace::onSegment(const tcp::DataSegment& segment) {
  const tcp::Sender& sender = endpoint_.sender();
  uint64_t begin = segment.bytes.begin;
  if (!segment.again) {
    windows_.erase(windows_.begin(), windows_.lower_bound(sender.acked()));
    if (sender.acked() > windowBegin_) windowBegin_ = begin;
    windows_[begin] = {sender.cwnd(), windowBegin_};
    return;
  }
  if (!sender.recovering()) return;  // the segment is a tail loss probe
  bool timeout = sender.phase() == tcp::Window::Phase::kTimeoutRecovery;
  Window window = windowOf(begin);
  if (window.bytes <= 0) return;
  if (recoveries_.empty() || recoveries_.back().timeout != timeout || begin >= end_) {
    double position = static_cast<double>(begin - window.begin) / window.bytes;
    recoveries_.push_back({timeout, 0, std::min(position, 1.0), window.bytes / sender.mss()});
    first_ = begin;
    end_ = sender.sentUpTo();
  }
  TracedRecovery& recovery = recoveries_.back();
  double size =
      static_cast<double>(begin - std::min(begin, first_)) / sender.mss() / recovery.window;
  recovery.size = std::max(recovery.size, std::min(size, 1.0));
}

Json recoveriesJson(std::span<const TracedRecovery> recoveries, bool timeout) {
  std::array<double, kBins> sizes{}, positions{};
  std::vector<double> windows;
  double large = 0;
  for (const TracedRecovery& r : recoveries) {
    if (r.timeout != timeout) continue;
    ++sizes[binOf(r.size)];
    ++positions[binOf(r.position)];
    large += r.size > kLarge + kRounding;
    windows.push_back(r.window);
  }
  double count = std::max(static_cast<double>(windows.size()), 1.0);
  for (double& n : sizes) n /= count;
  for (double& n : positions) n /= count;
  return {{"count", windows.size()},
          {"large", large / count},
          {"tail", positions.back()},
          {"sizes", sizes},
          {"positions", positions},
          {"window_mean", mean(windows)},
          {"window_p25", percentile(windows, 0.25)},
          {"window_p50", percentile(windows, 0.5)},
          {"window_p75", percentile(windows, 0.75)}};
}

}  // namespace braid::sim
