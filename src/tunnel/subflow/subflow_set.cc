#include "tunnel/subflow/subflow_set.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace braid {

std::optional<size_t> SubflowSet::named(const std::string& name) const {
  auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) return std::nullopt;
  return static_cast<size_t>(at - names_.begin());
}

Subflow& SubflowSet::add(std::unique_ptr<Subflow> subflow, std::string name) {
  Subflow& s = *subflow;
  uint8_t id = s.id().value();
  if (table_.size() <= id) table_.resize(id + size_t{1});
  assert(!table_[id].subflow);
  table_[id] = {std::move(subflow), static_cast<uint8_t>(order_.size())};
  order_.push_back(&s);
  names_.push_back(std::move(name));
  return s;
}

void SubflowSet::clear() {
  order_.clear();
  names_.clear();
  for (Numbered& numbered : table_) numbered.subflow.reset();
}

bool SubflowSet::anyUsable() const {
  return std::any_of(begin(), end(), [](const Subflow* s) { return s->usable(); });
}

Subflow* SubflowSet::fastest() const {
  Subflow* best = nullptr;
  for (Subflow* s : order_) {
    if (!s->gate().takesData()) continue;
    if (!best || s->path().rtt().smoothed() < best->path().rtt().smoothed()) best = s;
  }
  return best;
}

}  // namespace braid
