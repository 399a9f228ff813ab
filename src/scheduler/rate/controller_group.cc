#include "scheduler/rate/controller_group.h"

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
    auto other =
        std::find_if(earlier.begin(), earlier.end(), [&](auto* o) { return together(user, *o); });
    user.bottleneck = other != earlier.end() ? (*other)->bottleneck : i + 1;
  }
  for (BottleneckUser* u : users) {
    auto shares = [&](const BottleneckUser* o) { return o->bottleneck == u->bottleneck; };
    u->sharing = static_cast<size_t>(std::count_if(users.begin(), users.end(), shares));
  }
}

void ControllerGroup::leave(const Member& member) {
  if (suppressing_ == &member) release();
  std::erase(members_, &member);
}

void ControllerGroup::setUsable(Member& member, bool usable, Time now) {
  if (member.usable == usable) return;
  member.usable = usable;
  if (usable && suppressing_ && member.coupled) {
    member.suppressedAt = now;
  } else if (suppressing_ == &member) {
    release();
  } else {
    member.suppressedAt = kNever;
  }
  if (!suppressing_) rounds_ = 0;
}

double ControllerGroup::totalWindow() const {
  double sum = 0;
  for (const Member* m : members_) sum += m->isCoupled() ? m->window : 0;
  return sum;
}

double ControllerGroup::windowSharingMarks(const Member& member) const {
  double sum = 0;
  for (const Member* m : members_) {
    if (m == &member || (m->isCoupled() && shareMarks(m->marks, member.marks))) sum += m->window;
  }
  return sum;
}

void ControllerGroup::onMarks(Member& member, uint64_t marks, Time now) {
  if (now >= marksUntil_) {
    Duration longest = member.srtt;
    for (Member* m : members_) {
      m->marks.advance();
      if (m->isCoupled()) longest = std::max(longest, m->srtt);
    }
    marksUntil_ = now + longest;
  }
  member.marks.onAck(marks);
}

double ControllerGroup::alpha() const {
  double largest = 0, rates = 0, total = 0;
  for (const Member* m : members_) {
    if (!m->isCoupled() || m->srtt <= Duration{}) continue;
    double rtt = toSeconds(m->srtt);
    largest = std::max(largest, m->window / (rtt * rtt));
    rates += m->window / rtt;
    total += m->window;
  }
  return rates > 0 ? total * largest / (rates * rates) : 1;
}

double ControllerGroup::delta(const Member& member) const {
  double rates = 0;
  Duration least = Duration::max();
  for (const Member* m : members_) {
    if (!m->isCoupled() || m->srtt <= Duration{}) continue;
    rates += m->window / toSeconds(m->srtt);
    least = std::min(least, m->srtt);
  }
  if (rates <= 0 || member.srtt <= Duration{}) return 1;
  return member.window / toSeconds(least) / rates;
}

size_t ControllerGroup::sharing(const Member& member, Time now) {
  if (now >= regroupAt_) regroup(now);
  return member.takesPart() ? member.user.sharing : 1;
}

void ControllerGroup::regroup(Time now) {
  constexpr Duration kInterval = DelaySeries::kInterval;
  regroupAt_ = now - now.time_since_epoch() % kInterval + kInterval;
  users_.clear();
  for (Member* m : members_) {
    m->user.delays.advance(now);
    if (m->takesPart()) {
      users_.push_back(&m->user);
    } else {
      m->user.bottleneck = 0;
    }
  }
  groupByBottleneck(users_);
}

const ControllerGroup::Member* ControllerGroup::initial() const {
  if (suppressing_) return suppressing_;
  for (const Member* m : members_) {
    if (m->usable && m->coupled) return m;
  }
  return nullptr;
}

void ControllerGroup::onRound(bool marked, uint64_t gamma, uint64_t tau, Time now) {
  if (suppressing_) {
    rounds_ = marked ? 0 : rounds_ + 1;
    if (rounds_ >= tau) release();
    return;
  }
  size_t usable = 0, low = 0;
  for (const Member* m : members_) {
    usable += m->usable && m->coupled;
    low += m->usable && m->coupled && m->atMinimum;
  }
  rounds_ = low == usable ? rounds_ + 1 : 0;
  if (rounds_ >= gamma && usable > 1) suppress(now);
}

void ControllerGroup::suppress(Time now) {
  suppressing_ = initial();
  for (Member* m : members_) {
    if (m->usable && m->coupled && m != suppressing_) m->suppressedAt = now;
  }
  rounds_ = 0;
  ++episodes_;
}

void ControllerGroup::release() {
  suppressing_ = nullptr;
  for (Member* m : members_) m->suppressedAt = kNever;
  rounds_ = 0;
}

}  // namespace braid
