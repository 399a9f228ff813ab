// What a web server of strangers answers, as the search for captive portals reads it: a redirection
// is plain text, it begins to count with its line's end, and a page's server can be looked up.

#include <optional>
#include <string>
#include <string_view>

#include "gateway/uplinks/portal_watch.h"
#include "host/linux/web_probe.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

void checkServer(std::string_view url) {
  std::optional<braid::HostPort> server = braid::pageServer(url);
  if (!server) return;
  CHECK(server->port != 0);
  CHECK(!server->host.empty() && server->host.size() <= 253);
  if (braid::Address::parse(server->host)) return;
  for (char c : server->host) CHECK(c > ' ' && c < 0x7f && c != '/' && c != ':' && c != '@');
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  braid::WebAnswer answer = braid::readWebAnswer(text);
  CHECK(answer.status == 0 || (answer.status >= 100 && answer.status <= 999));
  CHECK(answer.status != 0 || answer.location.empty());
  CHECK(answer.location.size() <= 512);
  for (char c : answer.location) CHECK(c > ' ' && c < 0x7f);
  // What comes behind a whole head changes nothing.
  if (braid::hasWholeHead(text))
    CHECK(braid::readWebAnswer(std::string(text) + "Location: http://x/\n").location ==
          answer.location);
  checkServer(answer.location);
  checkServer(text);
}
