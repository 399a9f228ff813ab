#include "gateway/uplinks/portal_watch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "gateway/join/address_plan.h"

namespace braid {

namespace {

constexpr uint16_t kHttp = 80, kHttps = 443;
constexpr size_t kMostAddresses = 8;  // of a portal
constexpr unsigned kMostSilent = 2;   // requests without an answer after which a portal is over

std::string urlOf(const Address& server) {
  return "http://" + (server.isV4() ? server.toString() : "[" + server.toString() + "]") + "/";
}

// Host and port of "http://HOST[:PORT]/..." or "https://..."; nullopt: it is no such URL.
std::optional<HostPort> serverOf(std::string_view url) {
  size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  bool isSafe = url.substr(0, scheme) == "https";
  if (!isSafe && url.substr(0, scheme) != "http") return std::nullopt;
  std::string_view server = url.substr(scheme + 3);
  server = server.substr(0, server.find_first_of("/?#"));
  server = server.substr(server.rfind('@') == std::string_view::npos ? 0 : server.rfind('@') + 1);
  HostPort out{std::string(server), isSafe ? kHttps : kHttp};
  size_t colon = server.rfind(':'), bracket = server.find(']');
  if (server.starts_with('[') && bracket != std::string_view::npos) {
    out.host = server.substr(1, bracket - 1);
  } else if (colon != std::string_view::npos) {
    out.host = server.substr(0, colon);
    std::string_view port = server.substr(colon + 1);
    std::from_chars(port.data(), port.data() + port.size(), out.port);
  }
  return out.host.empty() ? std::nullopt : std::optional(std::move(out));
}

void add(const Address& address, std::vector<Address>& to) {
  auto at = std::ranges::lower_bound(to, address);
  if (to.size() < kMostAddresses && (at == to.end() || *at != address)) to.insert(at, address);
}

}  // namespace

const Address& PortalWatch::nobodyV4() {
  static const Address kNobody = *Address::parse("192.0.2.1");
  return kNobody;
}

const Address& PortalWatch::nobodyV6() {
  static const Address kNobody = *Address::parse("3fff::1");
  return kNobody;
}

PortalWatch::PortalWatch(Host& host, std::function<void()> onChange)
    : clock_(host.clock()), onChange_(std::move(onChange)), host_(host) {}

std::vector<Address> PortalWatch::serversOf(const Candidate& candidate) {
  std::vector<Address> out;
  if (candidate.way.v4.bits()) out.push_back(nobodyV4());
  if (candidate.way.v6.bits()) out.push_back(nobodyV6());
  for (const Address& a : candidate.suspects)
    if ((a.isV4() ? candidate.way.v4 : candidate.way.v6).bits()) out.push_back(a);
  return out;
}

void PortalWatch::follow(const std::vector<Candidate>& shut, bool anyAddress) {
  anyAddress_ = anyAddress;
  std::map<std::string, Watched> before = std::exchange(watched_, {});
  for (const Candidate& candidate : shut) {
    if (serversOf(candidate).empty()) continue;
    Watched& now = watched_[candidate.way.uplink];
    auto known = before.find(candidate.way.uplink);
    bool isSame =
        known != before.end() && known->second.candidate.way.interface == candidate.way.interface;
    if (isSame) now = std::move(known->second);
    if (!isSame) now.next = clock_.now() + kPatience;
    now.candidate = candidate;
  }
  deadline_ = kNever;
  for (const auto& [name, each] : watched_) deadline_ = std::min(deadline_, each.next);
  collect();
}

void PortalWatch::turn() {
  Time now = clock_.now();
  deadline_ = kNever;
  for (auto& [name, each] : watched_) {
    if (each.next <= now) {
      if (!probe_) probe_ = host_.openWebProbe([this](const WebAnswer& a) { onAnswer(a); });
      std::vector<Address> servers = serversOf(each.candidate);
      // While a portal stands, the server that showed it is asked again.
      if (each.portal.url.empty()) each.asked = servers[each.turn++ % servers.size()];
      each.next =
          now + std::min<Duration>(kPause * (1 << std::min(each.silent, 3u)), kLongestPause);
      probe_->request(each.candidate.way, each.asked);
    }
    deadline_ = std::min(deadline_, each.next);
  }
}

void PortalWatch::onAnswer(const WebAnswer& answer) {
  auto at = watched_.find(answer.uplink);
  if (at == watched_.end()) return;
  Watched& each = at->second;
  if (answer.status == 0) {
    if (++each.silent >= kMostSilent) each.portal = {};
    return collect();
  }
  each.silent = 0;
  const LookupWay& way = each.candidate.way;
  Portal found{answer.uplink, way.interface, urlOf(each.asked), {}};
  add(each.asked, found.addresses);
  // A location without a server is of the server that was asked (RFC 9110 section 10.2.2).
  std::optional<HostPort> server = serverOf(answer.location);
  if (server) found.url = answer.location;
  std::optional<Address> numeric = server ? Address::parse(server->host) : std::nullopt;
  if (numeric) add(*numeric, found.addresses);
  if (server && !numeric) {
    if (each.name == *server)
      for (const Address& a : each.portal.addresses) add(a, found.addresses);
    each.name = *server;
    if (!resolver_) resolver_ = host_.openResolver([this](const LookupResult& r) { onResult(r); });
    resolver_->request(way, *server);
  }
  each.portal = std::move(found);
  collect();
}

void PortalWatch::onResult(const LookupResult& result) {
  auto at = watched_.find(result.uplink);
  if (at == watched_.end() || at->second.name != result.name || at->second.portal.url.empty())
    return;
  for (const Endpoint& e : result.found) add(e.address, at->second.portal.addresses);
  collect();
}

// Notes and tells what has changed.
void PortalWatch::collect() {
  std::vector<Portal> now;
  for (const auto& [name, each] : watched_) {
    if (each.portal.url.empty()) continue;
    Portal& portal = now.emplace_back(each.portal);
    size_t leftOut = std::erase_if(portal.addresses, [&](const Address& a) {
      return !anyAddress_ && !isPrivate(a) && a != nobodyV4() && a != nobodyV6();
    });
    portal.isShut = leftOut > 0;
  }
  if (now == portals_) return;
  std::vector<Portal> before = std::exchange(portals_, std::move(now));
  auto stands = [](const std::vector<Portal>& list, const Portal& portal) {
    return std::ranges::any_of(
        list, [&](const Portal& p) { return p.uplink == portal.uplink && p.url == portal.url; });
  };
  for (const Portal& portal : portals_)
    if (!stands(before, portal))
      notes_.emplace_back(portal.uplink, "uplink " + portal.uplink +
                                             ": a captive portal waits for a login at " +
                                             portal.url +
                                             (portal.isShut ? ", which has a public address: with "
                                                              "'portal-check: any' hosts of the "
                                                              "LAN reach it"
                                                            : ", which hosts of the LAN reach"));
  for (const Portal& portal : before)
    if (!stands(portals_, portal))
      notes_.emplace_back(portal.uplink, "no captive portal is at uplink " + portal.uplink +
                                             " any more: " + portal.url);
  onChange_();
}

void PortalWatch::addTo(std::vector<UplinkStatus>& uplinks) const {
  for (UplinkStatus& uplink : uplinks)
    for (const Portal& portal : portals_)
      if (portal.uplink == uplink.name) uplink.portal = portal.url;
}

}  // namespace braid
