#include "scheduler/rate/shared_bottleneck.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {

bool together(const BottleneckUser& a, const BottleneckUser& b) {
  if (!a.delays.ready() || !b.delays.ready()) return false;
  bool before = a.before != 0 && a.before == b.before;
  return correlation(a.delays, b.delays) >= (before ? kStayCorrelation : kJoinCorrelation);
}

}  // namespace

void DelaySeries::onSample(Duration rtt, Time now) {
  advance(now);
  sum_ += static_cast<double>(rtt.count());
  ++samples_;
}

void DelaySeries::advance(Time now) {
  if (now < end_) return;
  if (now - end_ >= kIntervals * kInterval) {
    reset();
    end_ = now - now.time_since_epoch() % kInterval + kInterval;
  }
  for (; end_ <= now; end_ += kInterval) close();
}

void DelaySeries::close() {
  bool measured = samples_ >= kMinSamples;
  newest_ = (newest_ + 1) % kIntervals;
  means_[newest_] = measured ? sum_ / samples_ : 0;
  measured_ += measured;
  sum_ = 0;
  samples_ = 0;
}

bool DelaySeries::ready() const {
  if (measured_ < kWarmUp) return false;
  for (size_t age = 0; age < kIdle; ++age) {
    if (mean(age) > 0) return true;
  }
  return false;
}

double correlation(const DelaySeries& a, const DelaySeries& b) {
  auto forCommon = [&](auto f) {
    for (size_t age = 0; age < DelaySeries::kIntervals; ++age) {
      if (a.mean(age) > 0 && b.mean(age) > 0) f(a.mean(age), b.mean(age));
    }
  };
  size_t common = 0;
  double sumA = 0, sumB = 0;
  forCommon([&](double x, double y) {
    ++common;
    sumA += x;
    sumB += y;
  });
  if (common < DelaySeries::kCommon) return 0;
  double meanA = sumA / static_cast<double>(common), meanB = sumB / static_cast<double>(common);
  double varianceA = 0, varianceB = 0, covariance = 0;
  forCommon([&](double x, double y) {
    varianceA += (x - meanA) * (x - meanA);
    varianceB += (y - meanB) * (y - meanB);
    covariance += (x - meanA) * (y - meanB);
  });
  return varianceA > 0 && varianceB > 0 ? covariance / std::sqrt(varianceA * varianceB) : 0;
}

void groupByBottleneck(std::span<BottleneckUser*> users) {
  for (BottleneckUser* u : users) u->before = u->bottleneck;
  for (size_t i = 0; i < users.size(); ++i) {
    BottleneckUser& user = *users[i];
    auto earlier = users.first(i);
    auto other = std::find_if(earlier.begin(), earlier.end(), [&](auto* o) { return together(user, *o); });
    user.bottleneck = other != earlier.end() ? (*other)->bottleneck : i + 1;
  }
  for (BottleneckUser* u : users) {
    auto shares = [&](const BottleneckUser* o) { return o->bottleneck == u->bottleneck; };
    u->sharing = static_cast<size_t>(std::count_if(users.begin(), users.end(), shares));
  }
}

}  // namespace braid
