#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "web/access.h"
#include "web/answers.h"
#include "web/day_book.h"
#include "web/live_view.h"

namespace braid {

/// What matters of a request, as it came.
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

/// What is served, without sockets: the page's files, /api/status, /api/live, /api/past, /api/day, /metrics. There is nothing to
/// change here: only GET and HEAD are known.
class Site {
 public:
  using Done = std::function<void(WebResponse)>;
  static constexpr Duration kStatusAge = 900ms;  ///< of what the page shows: it asks every second
  static constexpr Duration kMetricsAge = 900ms;

  /// `answers` must outlive the site.
  Site(Access access, Answers& answers) : access_(std::move(access)), answers_(answers) {}

  /// Calls back once: at once, or when the daemon has answered. To HEAD the body is that of GET: whoever sends it knows
  /// its length.
  void handle(const WebRequest& request, Done done);
  /// Takes a look for the day; call every DayBook::kLook.
  void look();

 private:
  void serve(const std::string& path, const std::string& peer, Done done);
  void live(const std::string& peer, Done done);

  Access access_;
  Answers& answers_;
  LiveView live_;
  DayBook day_;
};

/// The value of `name` in the query of a target, decoded; nullopt: the target is malformed. Without such a name empty.
std::optional<std::string> queryValue(const std::string& target, const std::string& name);

}  // namespace braid
