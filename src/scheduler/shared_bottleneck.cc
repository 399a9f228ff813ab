#include "scheduler/shared_bottleneck.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {

using Users = std::span<BottleneckUser*>;

/// Section 4.1: full weight for the newest F, then declining to 1 for the last of M.
double weight(size_t age) {
  using D = DelayStatistics;
  return static_cast<double>(std::min(D::kM - D::kF + 1, D::kM - age));
}

/// The measures by which users are divided, in this order (steps 2 to 5), and whether `high` and `low`, next
/// to each other in order, stay together.
struct Measure {
  double DelayShape::*value;
  bool (*together)(double high, double low);
};
constexpr Measure kMeasures[] = {
    {&DelayShape::frequency,
     [](double high, double low) { return high - low < BottleneckGrouping::kFrequency; }},
    {&DelayShape::variability,
     [](double high, double low) { return high - low < BottleneckGrouping::kVariability * high; }},
    {&DelayShape::skew, [](double high, double low) { return high - low < BottleneckGrouping::kSkew; }},
    {&DelayShape::loss, [](double high, double low) {
       return high <= DelayStatistics::kLoss || high - low < BottleneckGrouping::kLoss * high;
     }}};

bool together(const BottleneckUser& a, const BottleneckUser& b) {
  bool alike = a.alike != 0 && a.alike == b.alike;
  bool before = a.before != 0 && a.before == b.before;
  if (!alike && !before) return false;
  double c = correlation(a.delays, b.delays);
  return (alike && c >= BottleneckGrouping::kJoin) || (before && c >= BottleneckGrouping::kStay);
}

}  // namespace

// Nanoseconds: sums and the mean of equal delays are exact, so that rounding does not skew (section 3.2.2).
void DelayStatistics::onSample(Duration rtt, Time now) {
  advance(now);
  auto delay = static_cast<double>(rtt.count());
  ++now_.samples;
  now_.mean += delay;
  now_.skew += (delay < meanDelay_) - (delay > meanDelay_);
  now_.deviation += std::abs(delay - previousMean_);
}

void DelayStatistics::onPackets(uint64_t acked, uint64_t lost, Time now) {
  advance(now);
  now_.acked += acked;
  now_.lost += lost;
}

void DelayStatistics::advance(Time now) {
  if (now < end_) return;
  if (now - end_ >= kN * kInterval) {
    reset();
    end_ = now - now.time_since_epoch() % kInterval + kInterval;
  }
  for (; end_ <= now; end_ += kInterval) close();
}

bool DelayStatistics::ready() const {
  if (measured_ < kWarmUp || recent_ < kM) return false;
  for (size_t age = 0; age < kIdle; ++age) {
    if (at(age).mean > 0) return true;
  }
  return false;
}

void DelayStatistics::close() {
  newest_ = (newest_ + 1) % kN;
  Interval& closed = at(0);
  closed = now_;
  now_ = {};
  if (closed.samples < kMinSamples) {
    closed = {.acked = closed.acked, .lost = closed.lost};
  } else {
    ++measured_;
    closed.mean /= closed.samples;
    previousMean_ = closed.mean;
    if (meanDelay_ == 0) closed.samples = closed.skew = 0, closed.deviation = 0;  // compared with nothing
  }
  double sum = 0, count = 0;
  for (size_t age = 0; age < kM; ++age) {
    sum += at(age).mean;
    count += at(age).mean > 0;
  }
  meanDelay_ = count > 0 ? sum / count : 0;
  summarise();
  countCrossings();
}

void DelayStatistics::summarise() {
  double skew = 0, samples = 0;
  for (size_t age = 0; age < kM; ++age) {
    skew += weight(age) * at(age).skew;
    samples += weight(age) * at(age).samples;
  }
  double lost = 0, all = 0;
  for (const Interval& i : history_) {
    lost += static_cast<double>(i.lost);
    all += static_cast<double>(i.acked + i.lost);
  }
  shape_.skew = samples > 0 ? skew / samples : 0;
  shape_.loss = all > 0 ? lost / all : 0;
  double limit = shape_.bottleneck ? kSkewHysteresis : kSkew;
  shape_.bottleneck = samples > 0 && (shape_.skew < limit || shape_.loss > kLoss);
  at(0).bottleneck = shape_.bottleneck;

  double deviation = 0, varied = 0;  // section 4.2: of bottlenecks only
  for (size_t age = 0; age < kM; ++age) {
    if (!at(age).bottleneck) continue;
    deviation += weight(age) * at(age).deviation;
    varied += weight(age) * at(age).samples;
  }
  shape_.variability = varied > 0 ? deviation / varied * 1e-9 : 0;
}

void DelayStatistics::countCrossings() {
  Interval& closed = at(0);
  if (closed.bottleneck && closed.mean > 0) {
    double margin = kCrossing * shape_.variability * 1e9;
    int side = (closed.mean > meanDelay_ + margin) - (closed.mean < meanDelay_ - margin);
    closed.crossing = side * side_ < 0;
    if (side != 0) side_ = side;
  }
  size_t crossings = 0;
  recent_ = 0;
  for (const Interval& i : history_) {
    crossings += i.crossing;
    recent_ += i.mean > 0;
  }
  shape_.frequency = recent_ > 0 ? static_cast<double>(crossings) / static_cast<double>(recent_) : 0;
}

double correlation(const DelayStatistics& a, const DelayStatistics& b) {
  double n = 0, sumA = 0, sumB = 0, squareA = 0, squareB = 0, product = 0;
  for (size_t age = 0; age < DelayStatistics::kN; ++age) {
    if (a.at(age).mean == 0 || b.at(age).mean == 0) continue;
    double x = a.at(age).mean - a.meanDelay_, y = b.at(age).mean - b.meanDelay_;
    ++n;
    sumA += x;
    sumB += y;
    squareA += x * x;
    squareB += y * y;
    product += x * y;
  }
  double varieties = (n * squareA - sumA * sumA) * (n * squareB - sumB * sumB);
  if (n < DelayStatistics::kM || varieties <= 0) return 0;
  return (n * product - sumA * sumB) / std::sqrt(varieties);
}

void BottleneckGrouping::group(Users users) {
  for (BottleneckUser* u : users) {
    bool ready = u->delays.ready();
    u->shape = ready ? u->delays.shape() : DelayShape{};
    u->before = ready ? u->bottleneck : 0;
    u->alike = 0;
  }
  auto rest = std::partition(users.begin(), users.end(), [](auto* u) { return u->shape.bottleneck; });
  divide({users.begin(), rest});
  for (auto u = users.begin(); u != users.end(); ++u) {
    auto same = std::find_if(users.begin(), u, [&](const BottleneckUser* v) { return together(**u, *v); });
    (*u)->bottleneck = same != u ? (*same)->bottleneck : ++last_;
  }
  for (BottleneckUser* u : users) {
    u->sharing = static_cast<size_t>(std::count_if(
        users.begin(), users.end(), [&](const BottleneckUser* v) { return v->bottleneck == u->bottleneck; }));
  }
}

/// Splits users into those alike by the measure of this step, and these by the next.
void BottleneckGrouping::divide(Users users, size_t step) {
  if (step == std::size(kMeasures)) {
    ++last_;
    for (BottleneckUser* u : users) u->alike = last_;
    return;
  }
  const Measure& measure = kMeasures[step];
  auto of = [&](const BottleneckUser* u) { return u->shape.*measure.value; };
  std::sort(users.begin(), users.end(), [&](auto* a, auto* b) { return of(a) > of(b); });
  size_t begin = 0;
  for (size_t i = 1; i <= users.size(); ++i) {
    if (i < users.size() && measure.together(of(users[i - 1]), of(users[i]))) continue;
    divide(users.subspan(begin, i - begin), step + 1);
    begin = i;
  }
}

}  // namespace braid
