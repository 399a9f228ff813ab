#include "web/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <set>

#include "tests/unit/web/fake_daemon.h"
#include "web/views.h"

namespace braid::site_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct SiteTest : testing::Test {
  SiteTest() { daemon.sayAll(); }
  WebResponse get(const std::string& target) {
    return ask({"GET", target, "127.0.0.1:9380", std::nullopt});
  }
  WebResponse ask(const WebRequest& request) {
    WebResponse out{.status = 0, .body = ""};
    site.handle(request, [&](WebResponse response) { out = std::move(response); });
    return out;
  }
  static std::map<std::string, std::string> headers(const WebResponse& response) {
    return {response.headers.begin(), response.headers.end()};
  }
  FakeDaemon daemon;
  Time now{1000s};
  Answers answers{daemon, [this] { return now; }};
  Site site{Access({"router.lan"}), answers};
};

TEST_F(SiteTest, ServesThePageAndItsFiles) {
  WebResponse page = get("/");
  EXPECT_EQ(page.status, 200u);
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  size_t bytes = 0;
  for (const PageFile& file : kPageFiles) {
    WebResponse got = get(std::string(file.path));
    EXPECT_EQ(got.status, 200u) << file.path;
    EXPECT_EQ(got.body, file.content);
    EXPECT_FALSE(got.body.empty()) << file.path;
    bytes += got.body.size();
  }
  EXPECT_LT(bytes, 100'000u);
  EXPECT_EQ(get("/style.css").type, "text/css; charset=utf-8");
  EXPECT_EQ(get("/page.js").type, "text/javascript; charset=utf-8");
  EXPECT_EQ(get("/icon.svg").type, "image/svg+xml");
  EXPECT_TRUE(daemon.asked.empty());
}

// Everything that the page refers to exists and is served by braid-web itself.
TEST_F(SiteTest, ThePageAsksNobodyElse) {
  for (const PageFile& file : kPageFiles) {
    std::string text(file.content);
    for (const char* away :
         {"https://", "//cdn", "@import", "url(", "eval(", "innerHTML", "document.write"})
      EXPECT_EQ(text.find(away), std::string::npos) << file.path << " " << away;
    for (size_t at = 0; (at = text.find("http://", at)) != std::string::npos; ++at)
      EXPECT_EQ(text.substr(at, 18), "http://www.w3.org/")
          << file.path << ": a name of XML is no address";
  }
  EXPECT_EQ(get("/index.html").body.find("style="), std::string::npos) << "the policy forbids it";
}

TEST_F(SiteTest, EveryAnswerHasAPolicy) {
  for (const char* target : {"/", "/metrics", "/api/live", "/nothing"}) {
    auto all = headers(get(target));
    EXPECT_THAT(all["Content-Security-Policy"], HasSubstr("default-src 'none'; script-src 'self'"))
        << target;
    EXPECT_THAT(all["Content-Security-Policy"], HasSubstr("frame-ancestors 'none'")) << target;
    EXPECT_EQ(all["X-Content-Type-Options"], "nosniff") << target;
    EXPECT_EQ(all["Cache-Control"], "no-store") << target;
    EXPECT_EQ(all["Referrer-Policy"], "no-referrer") << target;
  }
}

std::string unzipped(const std::string& small) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(small.data()));
  stream.avail_in = static_cast<uInt>(small.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

TEST_F(SiteTest, WhoTakesGzipGetsIt) {
  WebRequest request{"GET", "/page.js", "127.0.0.1:9380", std::nullopt, "deflate, gzip;q=0.5"};
  const WebResponse small = ask(request), whole = get("/page.js");
  EXPECT_EQ(headers(small).at("Content-Encoding"), "gzip");
  EXPECT_EQ(headers(small).at("Vary"), "Accept-Encoding");
  EXPECT_LT(small.body.size() * 2, whole.body.size());
  EXPECT_EQ(unzipped(small.body), whole.body);
  EXPECT_FALSE(headers(whole).contains("Content-Encoding"));
  request.target = "/nothing";
  EXPECT_FALSE(headers(ask(request)).contains("Content-Encoding")) << "not worth it";
}

TEST(Gzip, WhoTakesIt) {
  for (const char* yes : {"gzip", "GZip", "br, gzip", "deflate , gzip;q=0.1", "gzip; q=1.0"})
    EXPECT_TRUE(takesGzip(yes)) << yes;
  for (const char* no : {"", "identity", "gzip;q=0", "gzip ; q = 0.00", "xgzip", "br", "*", ",;,"})
    EXPECT_FALSE(takesGzip(no)) << no;
}

TEST_F(SiteTest, StatusIsWhatTheDaemonSaid) {
  WebResponse status = get("/api/status");
  EXPECT_EQ(status.type, "application/json");
  EXPECT_EQ(json::parse(status.body), daemon.says("status"));
}

TEST_F(SiteTest, LiveTellsPathsPeersAndFlows) {
  json live = json::parse(get("/api/live").body);
  EXPECT_EQ(live["paths"].size(), 2u);
  EXPECT_EQ(live["peers"][0]["name"], "hub");
  EXPECT_EQ(live["flows"].size(), 2u);
  EXPECT_EQ(live["gateway"]["version"], "1.2.3");
  EXPECT_EQ(json::parse(get("/api/live?peer=hub").body)["paths"].size(), 2u);
  EXPECT_EQ(json::parse(get("/api/live?peer=x%20y").body)["paths"].size(), 0u);
  EXPECT_EQ(daemon.asked.size(), 2u) << "three browsers are one to the daemon";
}

TEST_F(SiteTest, PastTellsStepsEventsAndWhatWasDone) {
  json past = json::parse(get("/api/past").body);
  EXPECT_EQ(past["steps"].size(), 2u);
  EXPECT_EQ(past["steps"][0]["steps"].size(), 1u);
  EXPECT_EQ(past["all_events"].size(), 1u);
  EXPECT_EQ(past["sums"]["recovered_packets"], 0);
  EXPECT_EQ(past["step_s"], 10.0);
  EXPECT_EQ(json::parse(get("/api/past?peer=x").body)["steps"].size(), 0u);
}

TEST_F(SiteTest, PastIsThatOfTheBusiestPaths) {
  json& paths = daemon.says("history")["paths"];
  paths = json::array();
  for (size_t i = 0; i < 2 * PastView::kPaths; ++i)
    paths.push_back({{"peer", "hub"}, {"path", "p" + std::to_string(i)}, {"bytes", i % 2 * 1000}});
  get("/api/past");
  size_t count = 0;
  for (const json& question : daemon.asked) {
    if (!question.contains("path")) continue;
    EXPECT_EQ(question["path"], "p" + std::to_string(2 * count + 1)) << "in the daemon's order";
    ++count;
  }
  EXPECT_EQ(count, PastView::kPaths);
}

TEST_F(SiteTest, DayTellsWhatWasLookedAt) {
  EXPECT_EQ(json::parse(get("/api/day").body)["paths"].size(), 0u);
  for (int i = 0; i < 300; ++i) {
    site.look();
    now += DayStore::kLook;
    daemon.wall += 29;
  }
  EXPECT_EQ(json::parse(get("/api/day").body)["paths"].size(), 2u);
}

TEST_F(SiteTest, MetricsAreThere) {
  WebResponse metrics = get("/metrics");
  EXPECT_EQ(metrics.type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(metrics.body, HasSubstr("braid_up 1\n"));
}

TEST_F(SiteTest, WithoutADaemonThePageLivesAndSaysSo) {
  daemon.problem = "no daemon answers at /run/braid/edge.sock";
  EXPECT_EQ(get("/").status, 200u);
  EXPECT_EQ(json::parse(get("/api/live").body)["problem"], daemon.problem);
  EXPECT_EQ(json::parse(get("/api/past").body)["problem"], daemon.problem);
  EXPECT_EQ(get("/api/status").status, 503u);
  EXPECT_EQ(json::parse(get("/api/status").body)["error"], daemon.problem);
  EXPECT_EQ(get("/metrics").status, 200u);
  EXPECT_THAT(get("/metrics").body, HasSubstr("braid_up 0\n"));
  daemon.problem.clear();
  now += 10s;
  EXPECT_EQ(json::parse(get("/api/live").body)["paths"].size(), 2u)
      << "and when the daemon is back";
}

TEST_F(SiteTest, OtherMethodsAndAddressesAreRefused) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", ""}) {
    WebResponse refused = ask({method, "/", "127.0.0.1", std::nullopt});
    EXPECT_EQ(refused.status, 405u) << method;
    EXPECT_EQ(headers(refused)["Allow"], "GET, HEAD");
  }
  EXPECT_EQ(ask({"HEAD", "/", "127.0.0.1", std::nullopt}).status, 200u);
  for (const char* target :
       {"/x", "/api", "/api/", "/api/status/", "/../etc/passwd", "/index.html/", "//", "/%2e"})
    EXPECT_EQ(get(target).status, 404u) << target;
  for (const char* target :
       {"", "x", "*", "http://127.0.0.1/", "/api/live?peer=%", "/api/live?peer=%4", "/?peer=%zz"})
    EXPECT_EQ(get(target).status, 400u) << target;
  EXPECT_EQ(get("/?" + std::string(3000, 'a')).status, 400u);
  EXPECT_TRUE(daemon.asked.empty());
}

// DNS rebinding: a stranger's page with a host name that points to this server.
TEST_F(SiteTest, ANameThatIsNotThisHostsIsRefused) {
  EXPECT_EQ(ask({"GET", "/api/status", "evil.example:9380", std::nullopt}).status, 421u);
  EXPECT_EQ(ask({"GET", "/api/status", std::nullopt, std::nullopt}).status, 421u);
  EXPECT_EQ(ask({"GET", "/api/status", "router.lan", std::nullopt}).status, 200u);
  EXPECT_EQ(ask({"GET", "/api/status", "localhost:1234", std::nullopt}).status, 200u);
}

TEST_F(SiteTest, WithATokenNothingIsThereWithoutIt) {
  Site guarded(Access({}, "correct-horse-battery"), answers);
  auto status = [&](const char* target, std::optional<std::string> authorization) {
    WebResponse out;
    guarded.handle({"GET", target, "192.0.2.1", std::move(authorization)},
                   [&](WebResponse r) { out = std::move(r); });
    EXPECT_EQ(headers(out)["WWW-Authenticate"].find("Basic realm=") == 0, out.status == 401);
    return out.status;
  };
  for (const char* target :
       {"/", "/page.js", "/metrics", "/api/status", "/api/live", "/api/past", "/api/day", "/x"}) {
    EXPECT_EQ(status(target, std::nullopt), 401u) << target;
    EXPECT_EQ(status(target, "Bearer wrong"), 401u) << target;
  }
  EXPECT_TRUE(daemon.asked.empty());
  EXPECT_EQ(status("/metrics", "Bearer correct-horse-battery"), 200u);
}

TEST(QueryValueTest, IsDecodedAndTheFirstCounts) {
  EXPECT_EQ(queryValue("/x", "peer"), "");
  EXPECT_EQ(queryValue("/x?peer", "peer"), "");
  EXPECT_EQ(queryValue("/x?a=1&peer=a%20b%2Bc+d&peer=e", "peer"), "a b+c d");
  EXPECT_EQ(queryValue("/x?peers=1&&=&peer=2", "peer"), "2");
  EXPECT_EQ(queryValue("/x?peer=%g0", "peer"), std::nullopt);
}

}  // namespace
}  // namespace braid::site_test
