#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "simnet/link/link.h"

namespace braid {

constexpr Time at(Duration d) {
  return Time{} + d;
}

struct Arrival {
  int id;
  Time time;
  bool operator==(const Arrival&) const = default;
};
inline void PrintTo(const Arrival& a, std::ostream* os) {
  *os << a.id << "@" << a.time.time_since_epoch().count() << "ns";
}

/// The items that arrive by `until`. Wakes only at the link's deadlines; a wake-up without an item
/// is an error.
template <class Item>
std::vector<std::pair<Item, Time>> drain(Link<Item>& link, Time until = kNever) {
  std::vector<std::pair<Item, Time>> out;
  while (link.nextDelivery() != kNever && link.nextDelivery() <= until) {
    Time now = link.nextDelivery();
    std::optional<Item> item = link.pop(now);
    if (!item) {
      ADD_FAILURE() << "nothing at the deadline";
      break;
    }
    out.emplace_back(std::move(*item), now);
  }
  return out;
}

inline std::vector<Arrival> arrivals(Link<int>& link, Time until = kNever) {
  std::vector<Arrival> out;
  for (auto& [id, time] : drain(link, until)) out.push_back({id, time});
  return out;
}

inline std::vector<int> ids(Link<int>& link, Time until = kNever) {
  std::vector<int> out;
  for (auto& [id, time] : drain(link, until)) out.push_back(id);
  return out;
}

inline void expectConserved(const LinkStats& s) {
  EXPECT_EQ(s.in.packets, s.delivered.packets - s.duplicated + s.dropped() + s.inside);
}

}  // namespace braid
