#include "web/site.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <cctype>
#include <string_view>

#include "gateway/control/status_json.h"
#include "inet/addresses.h"

namespace braid {

namespace {

namespace beast = boost::beast;

bool isSameWord(std::string_view a, std::string_view b) {
  return beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

// The host of "host", "host:port", "[v6]" or "[v6]:port"; empty: malformed.
std::string_view hostOf(std::string_view header) {
  std::string_view host = header, rest;
  if (header.starts_with('[')) {
    size_t end = header.find(']');
    if (end == std::string_view::npos) return {};
    host = header.substr(1, end - 1);
    rest = header.substr(end + 1);
  } else if (size_t colon = header.find(':'); colon != std::string_view::npos) {
    host = header.substr(0, colon);
    rest = header.substr(colon);
  }
  bool isPort = rest.empty() || (rest.size() <= 6 && rest.front() == ':' &&
                                 std::all_of(rest.begin() + 1, rest.end(),
                                             [](unsigned char c) { return std::isdigit(c) != 0; }));
  return isPort ? host : std::string_view();
}

// Takes the same time wherever the texts differ.
bool sameSecret(std::string_view a, std::string_view b) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> x{}, y{};
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), x.data());
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), y.data());
  return CRYPTO_memcmp(x.data(), y.data(), x.size()) == 0;
}

// The password of "user:password" in base64; nullopt: malformed.
std::optional<std::string> passwordOf(std::string_view encoded) {
  if (encoded.empty() || encoded.size() > 1024 || encoded.size() % 4 != 0) return std::nullopt;
  std::string text(encoded.size() / 4 * 3, '\0');
  int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                reinterpret_cast<const unsigned char*>(encoded.data()),
                                static_cast<int>(encoded.size()));
  if (decoded < 0) return std::nullopt;
  size_t padding = encoded.size() - (encoded.find_last_not_of('=') + 1);
  text.resize(static_cast<size_t>(decoded) - std::min<size_t>(padding, 2));
  size_t colon = text.find(':');
  return colon == std::string::npos ? std::nullopt : std::optional(text.substr(colon + 1));
}

}  // namespace

Access::Access(std::vector<std::string> hosts, std::string token)
    : hosts_(std::move(hosts)), token_(std::move(token)) {}

bool Access::isOwnHost(std::string_view header) const {
  std::string_view host = hostOf(header);
  if (host.empty()) return false;
  if (Address::parse(host) || isSameWord(host, "localhost")) return true;
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const std::string& h) { return isSameWord(h, host); });
}

bool Access::isLetIn(const std::optional<std::string>& authorization) const {
  if (token_.empty()) return true;
  if (!authorization) return false;
  size_t space = authorization->find(' ');
  if (space == std::string::npos) return false;
  std::string_view scheme = std::string_view(*authorization).substr(0, space);
  std::string_view rest = std::string_view(*authorization).substr(space + 1);
  if (isSameWord(scheme, "Bearer")) return sameSecret(rest, token_);
  if (!isSameWord(scheme, "Basic")) return false;
  std::optional<std::string> password = passwordOf(rest);
  return password && sameSecret(*password, token_);
}

namespace {

constexpr size_t kLongestTarget = 2048;
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";

// The page sends requests only to this server, and no other page may show it in a frame.
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

// Fewest bytes of an answer worth compressing: a shorter one takes one or two packets anyway.
constexpr size_t kLeastToCompress = 2000;

constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
constexpr int kLevel = 1;       // the fastest: JSON and text are so repetitive that it is enough
constexpr int kMemory = 8;      // zlib's default

}  // namespace

bool takesGzip(std::string_view list) {
  for (const auto& [coding, parameters] : beast::http::ext_list({list.data(), list.size()})) {
    if (!beast::iequals(coding, "gzip")) continue;
    for (const auto& [name, value] : parameters)  // "q=0", "q=0.0", ...: refused
      if (beast::iequals(name, "q") && value.find_first_not_of("0.") == value.npos) return false;
    return true;
  }
  return false;
}

std::optional<std::string> gzipOf(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (!isWhole) return std::nullopt;
  return out;
}

namespace {

// Compresses an answer, because its text repeats itself. It holds no secret that compression could
// reveal (BREACH).
void compress(WebResponse& response) {
  if (response.body.size() < kLeastToCompress) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  std::optional<std::string> small = gzipOf(response.body);
  if (!small) return;
  response.body = std::move(*small);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

// nullopt: the request is not refused.
std::optional<WebResponse> refusalOf(const WebRequest& request, const Access& access) {
  if (request.method != "GET" && request.method != "HEAD") {
    WebResponse out = refusal(405, "only GET and HEAD");
    out.headers.emplace_back("Allow", "GET, HEAD");
    return out;
  }
  if (!request.host || !access.isOwnHost(*request.host))
    return refusal(
        421, "this host is not known by that name; use an address, or give braid-web --host NAME");
  if (!access.isLetIn(request.authorization)) {
    WebResponse out =
        refusal(401, "a token is needed: as password, or as \"Authorization: Bearer TOKEN\"");
    out.headers.emplace_back("WWW-Authenticate", "Basic realm=\"Braid\", charset=\"UTF-8\"");
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> queryValue(const std::string& target, const std::string& name) {
  size_t mark = target.find('?');
  std::string_view rest =
      mark == std::string::npos ? "" : std::string_view(target).substr(mark + 1);
  while (!rest.empty()) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return equals == std::string_view::npos ? std::optional(std::string())
                                            : decoded(pair.substr(equals + 1));
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
    return PastView::tell(answers_, peer, [done = std::move(done)](const nlohmann::json& past) {
      done(jsonResponse(past));
    });
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
  answers_.get({{"cmd", "status"}}, kStatusAge,
               [this](const Answers::Shared& status) { day_.add(*status); });
}

void Site::live(const std::string& peer, Done done) {
  answers_.get({{"cmd", "status"}}, kStatusAge,
               [this, peer, done = std::move(done)](const Answers::Shared& status) {
                 live_.addStatus(status);
                 if (!status->problem.empty()) return done(jsonResponse(live_.view(peer)));
                 answers_.get({{"cmd", "flows"}}, kStatusAge,
                              [this, peer, done](const Answers::Shared& flows) {
                                live_.addFlows(flows);
                                done(jsonResponse(live_.view(peer)));
                              });
               });
}

}  // namespace braid
