#include "gateway/uplinks/portal_watch.h"

#include <strings.h>

#include <algorithm>

#include "gateway/join/invitation.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr size_t kMostAddresses = 8;  // of a portal
constexpr size_t kMostSuspects = 4;   // of an uplink
constexpr unsigned kMostSilent = 2;   // turns without an answer after which a portal is over

std::string urlOf(const Address& server) {
  return "http://" + (server.isV4() ? server.toString() : "[" + server.toString() + "]") + "/";
}

// A scheme has no case (RFC 3986 section 3.1).
bool hasScheme(std::string_view url, std::string_view scheme) {
  return url.size() >= scheme.size() &&
         ::strncasecmp(url.data(), scheme.data(), scheme.size()) == 0;
}

// A web server of another host answers with a page. A proxy that finds no way to the address
// answers 502 or 504.
bool isPortal(const WebAnswer& answer) {
  constexpr unsigned kOk = 200, kNotModified = 304, kLogIn = 511;
  bool redirects = answer.status / 100 == 3 && answer.status != kNotModified;
  return redirects || (PortalWatch::isNobodys(answer.server) &&
                       (answer.status == kOk || answer.status == kLogIn));
}

void add(const Address& address, std::vector<Address>& to) {
  auto at = std::ranges::lower_bound(to, address);
  if (to.size() < kMostAddresses && (at == to.end() || *at != address)) to.insert(at, address);
}

}  // namespace

std::optional<HostPort> pageServer(std::string_view url) {
  bool isSafe = hasScheme(url, "https://");
  if (!isSafe && !hasScheme(url, "http://")) return std::nullopt;
  std::string_view part = url.substr(url.find("://") + 3);
  part = part.substr(0, part.find_first_of("/?#"));
  std::string server(part.substr(part.rfind('@') + 1));  // npos + 1 is 0
  if (server.ends_with(']') || server.find(':') == std::string::npos) server += ':';
  if (server.ends_with(':')) server += std::to_string(isSafe ? Portal::kHttps : Portal::kHttp);
  return parseHostPort(server);
}

const std::vector<Address>& PortalWatch::nobodys() {
  static const std::vector<Address> kNobodys{*Address::parse("192.0.2.1"),
                                             *Address::parse("3fff::1")};
  return kNobodys;
}

bool PortalWatch::isNobodys(const Address& address) {
  return std::ranges::find(nobodys(), address) != nobodys().end();
}

std::vector<Address> PortalWatch::serversOf(const Candidate& candidate) {
  std::vector<Address> out = nobodys();
  size_t suspects = std::min(candidate.suspects.size(), kMostSuspects);
  out.insert(out.end(), candidate.suspects.begin(),
             candidate.suspects.begin() + static_cast<ptrdiff_t>(suspects));
  std::erase_if(out, [&](const Address& a) {
    return (a.isV4() ? candidate.way.v4 : candidate.way.v6).bits() == 0;
  });
  return out;
}

void PortalWatch::follow(const std::vector<Candidate>& shut, bool looksUp) {
  Time soon = host_.clock().now() + kPatience;
  looksUp_ = looksUp;
  std::map<std::string, Watched> before = std::exchange(watched_, {});
  for (const Candidate& candidate : shut) {
    if (serversOf(candidate).empty()) continue;
    Watched& now = watched_[candidate.way.uplink];
    auto known = before.find(candidate.way.uplink);
    bool isSame = known != before.end() && known->second.candidate.way == candidate.way;
    if (isSame) now = std::move(known->second);
    bool isNew = !isSame || now.candidate.suspects != candidate.suspects;
    if (isNew) now.next = std::min(now.next, soon);
    now.candidate = candidate;
  }
  deadline_ = kNever;
  for (const auto& [name, each] : watched_) deadline_ = std::min(deadline_, each.next);
  collect();
}

void PortalWatch::turn() {
  Time now = host_.clock().now();
  deadline_ = kNever;
  for (auto& [name, each] : watched_) {
    if (each.next <= now) {
      if (!each.asked.empty()) each.silent = each.answered.empty() ? each.silent + 1 : 0;
      if (each.silent >= kMostSilent) each.portal = {};
      if (!each.answered.contains(each.shows)) each.shows = {};
      each.next =
          now + std::min<Duration>(kPause * (1 << std::min(each.silent, 3u)), kLongestPause);
      ask(each);
    }
    deadline_ = std::min(deadline_, each.next);
  }
  collect();
}

void PortalWatch::ask(Watched& each) {
  each.asked.clear();
  each.answered.clear();
  for (const Address& server : serversOf(each.candidate)) {
    try {
      if (!probe_) probe_ = host_.openWebProbe([this](const WebAnswer& a) { onAnswer(a); });
      each.asked.insert(server);
      probe_->request(each.candidate.way, server);
    } catch (const SystemError& e) {
      log_.warn(LogKind::kNetwork, host_.clock().now(),
                "cannot look for a captive portal: " + std::string(e.what()));
    }
  }
}

void PortalWatch::onAnswer(const WebAnswer& answer) {
  auto at = watched_.find(answer.way.uplink);
  if (at == watched_.end() || !(at->second.candidate.way == answer.way)) return;
  Watched& each = at->second;
  if (!each.asked.contains(answer.server) || !isPortal(answer)) return;
  each.answered.insert(answer.server);
  if (each.shows.bits() == 0) each.shows = answer.server;
  if (each.shows != answer.server) return;
  // A location without a server, or without a scheme, is of the one that was asked (RFC 9110
  // section 10.2.2).
  std::string location = (answer.location.starts_with("//") ? "http:" : "") + answer.location;
  std::optional<HostPort> server = pageServer(location);
  Portal found{answer.way.uplink,
               server ? location : urlOf(answer.server),
               server ? server->port : Portal::kHttp,
               {}};
  std::optional<Address> numeric = server ? Address::parse(server->host) : answer.server;
  bool isSameName = server && !numeric && each.name == *server;
  if (numeric) add(*numeric, found.addresses);
  if (isSameName) found.addresses = each.portal.addresses;  // while it is looked up again
  each.name = server && !numeric ? *server : HostPort{};
  each.portal = std::move(found);
  lookUp(each);
  collect();
}

void PortalWatch::lookUp(Watched& each) {
  if (each.name.host.empty() || !looksUp_) return;
  LookupWay way = each.candidate.way;
  way.strict = true;
  try {
    if (!resolver_) resolver_ = host_.openResolver([this](const LookupResult& r) { onResult(r); });
    resolver_->request(way, each.name);
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, host_.clock().now(), e.what());
  }
}

void PortalWatch::onResult(const LookupResult& result) {
  auto at = watched_.find(result.uplink);
  if (at == watched_.end() || at->second.name != result.name || result.found.empty()) return;
  at->second.portal.addresses.clear();
  for (const Endpoint& e : result.found) add(e.address, at->second.portal.addresses);
  collect();
}

void PortalWatch::collect() {
  std::vector<Portal> now;
  for (const auto& [name, each] : watched_)
    if (!each.portal.url.empty()) now.push_back(each.portal);
  if (now == portals_) return;
  changed_ = true;
  std::vector<Portal> before = std::exchange(portals_, std::move(now));
  auto stands = [](const std::vector<Portal>& list, const Portal& portal) {
    return std::ranges::any_of(list, [&](const Portal& p) { return p.uplink == portal.uplink; });
  };
  for (const Portal& portal : portals_)
    if (!stands(before, portal))
      notes_.emplace_back(
          portal.uplink,
          "uplink " + portal.uplink + ": a captive portal waits for a login at " + portal.url);
  for (const Portal& portal : before)
    if (!stands(portals_, portal))
      notes_.emplace_back(portal.uplink,
                          "uplink " + portal.uplink + ": no captive portal any more");
}

}  // namespace braid
