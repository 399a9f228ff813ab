#include "web/site.h"

#include <algorithm>
#include <string_view>

#include "gateway/control/object_writer.h"
#include "web/gzip.h"
#include "web/metrics.h"
#include "web/page_files.h"
#include "web/past_view.h"

namespace braid {
namespace {

constexpr size_t kLongestTarget = 2048;
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";

// The page asks nobody but this server, and is in nobody's frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    int high = hexDigit(text[i + 1]), low = hexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

WebResponse refusal(unsigned status, const std::string& why) {
  return {.status = status, .type = kPlain, .body = why + "\n"};
}

WebResponse jsonResponse(const nlohmann::json& value) {
  return {.status = 200, .type = kJson, .body = jsonText(value) + "\n"};
}

const char* typeOf(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

void guard(WebResponse& response) {
  auto& headers = response.headers;
  headers.emplace_back("Content-Security-Policy", kPolicy);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  headers.emplace_back("Referrer-Policy", "no-referrer");
  headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  headers.emplace_back("Cache-Control", "no-store");
}

// Answers are text that repeats itself. There is no secret in them that compression could tell (BREACH).
void compress(WebResponse& response) {
  if (response.body.size() < kLeastToCompress) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  std::optional<std::string> small = gzipOf(response.body);
  if (!small) return;
  response.body = std::move(*small);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

// nullopt: nobody is refused.
std::optional<WebResponse> refusalOf(const WebRequest& request, const Access& access) {
  if (request.method != "GET" && request.method != "HEAD") {
    WebResponse out = refusal(405, "only GET and HEAD");
    out.headers.emplace_back("Allow", "GET, HEAD");
    return out;
  }
  if (!request.host || !access.isOwnHost(*request.host))
    return refusal(421, "this host is not known by that name; use an address, or give braid-web --host NAME");
  if (!access.isLetIn(request.authorization)) {
    WebResponse out = refusal(401, "a token is needed: as password, or as \"Authorization: Bearer TOKEN\"");
    out.headers.emplace_back("WWW-Authenticate", "Basic realm=\"Braid\", charset=\"UTF-8\"");
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> queryValue(const std::string& target, const std::string& name) {
  size_t mark = target.find('?');
  std::string_view rest = mark == std::string::npos ? "" : std::string_view(target).substr(mark + 1);
  while (!rest.empty()) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return equals == std::string_view::npos ? std::optional(std::string()) : decoded(pair.substr(equals + 1));
  }
  return std::string();
}

void Site::handle(const WebRequest& request, Done done) {
  bool isSmall = request.acceptEncoding && takesGzip(*request.acceptEncoding);
  auto answer = [done = std::move(done), isSmall](WebResponse response) {
    if (isSmall) compress(response);
    guard(response);
    done(std::move(response));
  };
  if (auto refused = refusalOf(request, access_)) return answer(std::move(*refused));
  std::optional<std::string> peer = queryValue(request.target, "peer");
  if (!peer || request.target.size() > kLongestTarget || !request.target.starts_with('/'))
    return answer(refusal(400, "a malformed address"));
  serve(request.target.substr(0, request.target.find('?')), *peer, std::move(answer));
}

void Site::serve(const std::string& path, const std::string& peer, Done done) {
  if (path == "/api/live") return live(peer, std::move(done));
  if (path == "/api/past") {
    return PastView::tell(answers_, peer,
                          [done = std::move(done)](const nlohmann::json& past) { done(jsonResponse(past)); });
  }
  if (path == "/api/day") return done(jsonResponse(day_.tell(peer)));
  if (path == "/api/status") {
    return answers_.get(
        {{"cmd", "status"}}, kStatusAge, [done = std::move(done)](const Answers::Shared& status) {
          if (!status->problem.empty())
            return done({.status = 503,
                         .type = kJson,
                         .body = jsonText({{"ok", false}, {"error", status->problem}}) + "\n"});
          done({.status = 200, .type = kJson, .body = status->text});
        });
  }
  if (path == "/metrics") {
    return answers_.get({{"cmd", "status"}}, kMetricsAge,
                        [done = std::move(done)](const Answers::Shared& status) {
                          done({.status = 200, .type = kMetrics, .body = metricsText(*status)});
                        });
  }
  std::string_view wanted = path == "/" ? "/index.html" : std::string_view(path);
  auto found = std::find_if(kPageFiles.begin(), kPageFiles.end(),
                            [&](const PageFile& file) { return file.path == wanted; });
  if (found == kPageFiles.end()) return done(refusal(404, "nothing is here"));
  done({.status = 200, .type = typeOf(wanted), .body = std::string(found->content)});
}

void Site::look() {
  answers_.get({{"cmd", "status"}}, kStatusAge, [this](const Answers::Shared& status) { day_.add(*status); });
}

void Site::live(const std::string& peer, Done done) {
  answers_.get(
      {{"cmd", "status"}}, kStatusAge, [this, peer, done = std::move(done)](const Answers::Shared& status) {
        live_.addStatus(status);
        if (!status->problem.empty()) return done(jsonResponse(live_.view(peer)));
        answers_.get({{"cmd", "flows"}}, kStatusAge, [this, peer, done](const Answers::Shared& flows) {
          live_.addFlows(flows);
          done(jsonResponse(live_.view(peer)));
        });
      });
}

}  // namespace braid
