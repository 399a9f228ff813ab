// The handling in braid-web of any request from the HTTP library, and of any JSON that a daemon may
// answer. The input has up to four lines (method, target, host, authorization, which is taken for
// the accepted encodings, too), followed by the daemon's answers: one a line, given in turn.

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "web/site.h"
#include "web/views.h"

namespace {

using namespace braid;
using fuzz::require;

class Daemon : public DaemonLink {
 public:
  void add(std::string_view text) {
    answers_.push_back(nlohmann::json::parse(text, nullptr, false));
  }
  void ask(const nlohmann::json&, Done done) override {
    require(++asked_ < 5000, "questions without end");
    DaemonAnswer out;
    out.value = answers_[asked_ % answers_.size()];
    out.problem = out.value.is_object() ? "" : "none";
    out.at = at_ += asked_ % 8 == 0 ? 40 : 1;
    done(std::move(out));
  }

 private:
  std::vector<nlohmann::json> answers_;
  size_t asked_ = 0;
  double at_ = 1'700'000'000;
};

std::string_view cut(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  return line;
}

void checkAnswer(Site& site, const WebRequest& request) {
  int answers = 0;
  site.handle(request, [&](const WebResponse& response) {
    ++answers;
    require(response.status >= 200 && response.status < 600, "no status");
    require(response.status != 200 || request.method == "GET" || request.method == "HEAD",
            "another method");
    bool hasPolicy = false;
    for (const auto& [name, value] : response.headers) {
      hasPolicy |= name == "Content-Security-Policy";
      require(value.find_first_of("\r\n") == std::string::npos, "a header of two lines");
    }
    require(hasPolicy, "no policy");
  });
  require(answers == 1, "not one answer");
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  WebRequest request{std::string(cut(rest)), std::string(cut(rest)), std::string(cut(rest)),
                     std::string(cut(rest))};
  request.acceptEncoding = request.authorization;
  Daemon daemon;
  do {
    daemon.add(cut(rest));
  } while (!rest.empty());
  Time now{};
  Answers answers(daemon, [&] { return now += 1s; });
  Site open(Access({"router.lan"}), answers), guarded(Access({}, "correct-horse-battery"), answers);
  checkAnswer(open, request);
  checkAnswer(guarded, request);
  for (int looks = 0; looks < 6; ++looks) {
    for (const char* target : {"/metrics", "/api/live", "/api/past", "/api/status", "/api/day"})
      checkAnswer(open, {"GET", target, "127.0.0.1", std::nullopt, request.acceptEncoding});
    open.look();
  }
}
