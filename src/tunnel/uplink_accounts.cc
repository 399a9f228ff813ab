#include "tunnel/uplink_accounts.h"

#include <algorithm>
#include <utility>

namespace braid {

void UplinkAccounts::set(std::vector<UplinkSpec> specs) {
  std::vector<UplinkAccount> before = std::exchange(accounts_, {});
  metered_.clear();
  for (UplinkSpec& spec : specs) {
    UplinkAccount account;
    auto known = std::find_if(before.begin(), before.end(),
                              [&](const UplinkAccount& a) { return a.spec.name == spec.name; });
    if (known != before.end()) account = std::move(*known);
    account.spec = std::move(spec);
    if (uint64_t rate = account.spec.preference.ceiling; rate == 0) {
      account.ceiling.reset();
    } else {
      if (!account.ceiling) account.ceiling = std::make_shared<Pacer>(datagram_);
      account.ceiling->setRate(static_cast<double>(rate));
    }
    if (!account.spec.meter) {
      account.meter.reset();
    } else if (account.meter) {
      account.meter->setCap(account.spec.meter->cap);
    } else {
      account.meter.emplace(account.spec.meter->cap, account.spec.meter->used);
    }
    if (account.meter) {
      for (const UplinkSpec::Socket& socket : account.spec.sockets) metered_[socket.id] = accounts_.size();
    }
    accounts_.push_back(std::move(account));
  }
}

UplinkAccount* UplinkAccounts::find(std::string_view name) {
  auto found = std::find_if(accounts_.begin(), accounts_.end(),
                            [&](const UplinkAccount& a) { return a.spec.name == name; });
  return found != accounts_.end() ? &*found : nullptr;
}

const UplinkAccount* UplinkAccounts::count(const Route& route, size_t bytes, Time now) {
  auto found = metered_.find(route.socket);
  if (found == metered_.end()) return nullptr;
  UplinkAccount& account = accounts_[found->second];
  return account.meter->add(bytes + outerHeaders(route), now) ? &account : nullptr;
}

}  // namespace braid
