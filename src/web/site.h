#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "web/answers.h"
#include "web/views.h"

namespace braid {

/// Decides which requests are served. Without a token, every client that can connect may look; the
/// socket is a loopback one then.
class Access {
 public:
  static constexpr size_t kShortestToken = 16;  ///< bytes

  /// `hosts`: names by which browsers know this host. `token`: empty for none.
  explicit Access(std::vector<std::string> hosts = {}, std::string token = {});

  /// Whether a request's host is an address or one of this host's own names; only these are served.
  /// A foreign web page can make a browser send requests to a name that the page's owner lets point
  /// here, and read the answers (DNS rebinding). It cannot do that with these hosts.
  bool isOwnHost(std::string_view host) const;
  /// `authorization`: the header's value, "Bearer TOKEN", or "Basic" with the token as password,
  /// which browsers ask the user for.
  bool isLetIn(const std::optional<std::string>& authorization) const;

 private:
  std::vector<std::string> hosts_;
  std::string token_;
};

/// The parts of a request that are used, as received.
struct WebRequest {
  std::string method, target;
  std::optional<std::string> host, authorization;
  std::optional<std::string> acceptEncoding = {};
};

struct WebResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// A file of the web page, embedded in the program.
struct PageFile {
  std::string_view path;  ///< "/style.css"
  std::string_view content;
};
extern const std::span<const PageFile> kPageFiles;

/// Serves the page's files, /api/status, /api/live, /api/past, /api/day and /metrics; has no
/// sockets itself. Nothing can be changed here: only GET and HEAD are accepted.
class Site {
 public:
  using Done = std::function<void(WebResponse)>;
  /// Largest age of an answer that the page shows: it asks every second.
  static constexpr Duration kStatusAge = 900ms;
  static constexpr Duration kMetricsAge = 900ms;

  /// `answers` must outlive the site.
  Site(Access access, Answers& answers) : access_(std::move(access)), answers_(answers) {}

  /// Calls back once: at once, or when the daemon has answered. The response to HEAD
  /// has the body of GET, so that the caller knows its length.
  void handle(const WebRequest& request, Done done);
  /// Takes a sample for the day view; call every DayStore::kLook.
  void look();

 private:
  void serve(const std::string& path, const std::string& peer, Done done);
  void live(const std::string& peer, Done done);

  Access access_;
  Answers& answers_;
  LiveView live_;
  DayStore day_;
};

/// The decoded value of `name` in a target's query; empty when the name is missing; nullopt: the
/// target is malformed.
std::optional<std::string> queryValue(const std::string& target, const std::string& name);

/// Whether a request's Accept-Encoding accepts gzip (RFC 9110 section 12.5.3).
bool takesGzip(std::string_view acceptEncoding);
/// The text as gzip (RFC 1952); nullopt: not enough memory.
std::optional<std::string> gzipOf(std::string_view text);

}  // namespace braid
