// What a web server of strangers answers, as the search for captive portals reads it: a redirection
// is plain text, it begins to count with its line's end, and a page's server can be looked up.
// Whatever is answered, the search keeps its bounds, and says that a portal began before it ended.
//
// Input: answers with a 0 byte between them. What a name server answers is made of their text.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/uplinks/portal_watch.h"
#include "host/fake/fake_host.h"
#include "host/linux/web_answer.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;

void checkServer(std::string_view url) {
  std::optional<HostPort> server = pageServer(url);
  if (!server) return;
  CHECK(server->port != 0);
  CHECK(!server->host.empty() && server->host.size() <= 253);
  if (Address::parse(server->host)) return;
  for (char c : server->host) CHECK(c > ' ' && c < 0x7f && c != '/' && c != ':' && c != '@');
}

// The search on two uplinks, one of which has suspicious private addresses.
class Search {
 public:
  Search() {
    for (const char* name : {"wifi", "lte"}) {
      PortalWatch::Candidate& candidate = shut_.emplace_back();
      candidate.way.uplink = name;
      candidate.way.interface = name;
      candidate.way.v4 = *Address::parse("10.0.0.9");
    }
    shut_[1].way.v6 = *Address::parse("2001:db8::9");
    for (const char* suspect : {"10.0.0.1", "192.168.1.1", "fd00::1"})
      shut_[1].suspects.push_back(*Address::parse(suspect));
    watch_.follow(shut_, true);
  }

  void hear(const WebAnswer& answer, std::string_view text) {
    clock_.advance(1s * (1 + text.size() % 70));
    host_.refusePortals(text.size() % 16 == 15);
    if (watch_.deadline() <= clock_.now()) watch_.turn();
    if (!host_.pages().empty()) {
      const auto [way, server] = host_.pages()[text.size() % host_.pages().size()];
      host_.answerPage(way.uplink, server, answer.status, answer.location);
    }
    for (const HostPort& name : host_.asked()) resolve(name, text);
    if (text.size() % 8 == 7) watch_.follow({shut_[text.size() / 8 % 2]}, text.size() % 3 != 0);
    check();
  }
  void end() {
    watch_.follow({}, true);
    check();
    CHECK(watch_.portals().empty() && watch_.deadline() == kNever);
    for (const auto& [uplink, balance] : told_) CHECK(balance == 0);
  }

 private:
  void resolve(const HostPort& name, std::string_view text) {
    std::vector<Endpoint> found;
    for (size_t i = 0; i < text.size() % 12; ++i) {
      Address address = *Address::parse("192.0.2.0");
      address.bytes[3] = static_cast<uint8_t>(text[i]);
      found.push_back({address, name.port});
    }
    host_.answer(name, found);
  }
  void check() {
    for (const Portal& portal : watch_.portals()) {
      CHECK(!portal.url.empty() && portal.port != 0 && portal.addresses.size() <= 8);
      CHECK(std::ranges::is_sorted(portal.addresses));
      for (char c : portal.url) CHECK(c > ' ' && c < 0x7f);
      CHECK(pageServer(portal.url).has_value());
    }
    for (const auto& [uplink, text] : watch_.takeNotes()) {
      int& balance = told_[uplink];
      balance += text.find("no captive portal") == std::string::npos ? 1 : -1;
      CHECK(balance == 0 || balance == 1);
    }
  }

  FakeClock clock_;
  FakeHost host_{clock_, 1};
  LogLimiter log_;
  PortalWatch watch_{host_, log_};
  std::vector<PortalWatch::Candidate> shut_;
  std::map<std::string, int> told_;  ///< portals that began, less those that ended
};

WebAnswer checkAnswer(std::string_view text) {
  WebAnswer answer = readWebAnswer(text);
  CHECK(answer.status == 0 || (answer.status >= 100 && answer.status <= 999));
  CHECK(answer.status != 0 || answer.location.empty());
  CHECK(answer.location.size() <= 512);
  for (char c : answer.location) CHECK(c > ' ' && c < 0x7f);
  // What comes behind a whole head changes nothing.
  if (hasWholeHead(text))
    CHECK(readWebAnswer(std::string(text) + "Location: http://x/\n").location == answer.location);
  checkServer(answer.location);
  checkServer(text);
  return answer;
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Search search;
  do {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    search.hear(checkAnswer(text), text);
  } while (!rest.empty());
  search.end();
}
