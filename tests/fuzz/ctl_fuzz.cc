// The output of braidctl for any JSON that a daemon may answer: it must not contain terminal
// control sequences.
//
// The lines of the input are the answers to status and flows, then the same some seconds later,
// then the index of the history, and then in turn those about a path and about a peer. A line that
// is missing is as the first one.

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/views/format.h"
#include "ctl/views/views.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using Json = nlohmann::json;

constexpr size_t kMost = 32;  // answers

void checkText(std::string_view text) {
  for (const char c : text) CHECK(c == '\n' || static_cast<unsigned char>(c) >= ' ');
}

class Answers {
 public:
  explicit Answers(std::string_view rest) {
    do {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      Json answer = Json::parse(line, nullptr, false);
      // ask() returns only objects.
      if (answer.is_object()) all_.push_back(std::move(answer));
    } while (!rest.empty() && all_.size() < kMost);
  }
  bool empty() const { return all_.empty(); }
  const Json& operator[](size_t place) const { return all_[place < all_.size() ? place : 0]; }
  /// Every second one from `place` on, the first one if there is none.
  std::vector<Json> from(size_t place) const {
    std::vector<Json> out{(*this)[place]};
    for (size_t i = place + 2; i < all_.size(); i += 2) out.push_back(all_[i]);
    return out;
  }

 private:
  std::vector<Json> all_;
};

// Figures of any size in every unit.
void checkFigures(const Json& answer) {
  for (const auto& [name, value] : answer.items()) {
    if (!value.is_number()) continue;
    const auto figure = value.get<double>();
    for (auto* format : {formatBytes, formatRate, formatMilliseconds, formatMicroseconds,
                         formatFraction, formatAvailability, formatNumber, formatAge,
                         formatShortAge, formatDate, formatTimeOfDay}) {
      const std::string text = format(figure);
      CHECK(!text.empty() && text.size() < 64);
      checkText(text);
    }
    for (const FieldUnit unit :
         {FieldUnit::kNone, FieldUnit::kBytes, FieldUnit::kBytesPerSecond, FieldUnit::kMilliseconds,
          FieldUnit::kSeconds, FieldUnit::kUnixSeconds, FieldUnit::kFraction})
      checkText(figureText(answer, {.name = name.c_str(), .unit = unit}));
  }
}

void checkTop(const Answers& answers) {
  TopScreen screen;
  CHECK(screen.lines(TopView::kPaths, 20, 80).empty());
  screen.add({1, answers[0], answers[1]});
  for (const double at : {2.0, 30.0, 31.0, 1.0}) {
    screen.add({at, answers[2], answers[3]});
    for (const TopView view : {TopView::kPaths, TopView::kPeers, TopView::kFlows}) {
      const std::vector<std::string> lines = screen.lines(view, 20, 80);
      CHECK(lines.size() <= 20);
      for (const std::string& line : lines) checkText(line);
    }
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  const Answers answers({reinterpret_cast<const char*>(data), size});
  if (answers.empty()) return;
  for (auto* view : {statusText, verboseStatusText, peersText, pathsText, recoveryText})
    checkText(view(answers[0]));
  // An answer twice: what is there has a rate of nothing, as an idle flow has.
  for (const FlowLook& last :
       {FlowLook{}, FlowLook{1, answers[1]}, FlowLook{1, answers[3]}, FlowLook{2, answers[1]}})
    for (const bool withIdle : {false, true})
      checkText(flowsText({2, answers[1]}, last, {}, withIdle));
  const PastAnswers past{answers[4], answers.from(5), answers.from(6)};
  for (const double until : {1e9, 1.8e9}) checkText(explainText(explain(past, 0, until)));
  checkText(paragraph(printable(answers[0].dump(-1, ' ', true))));
  checkFigures(answers[0]);
  checkTop(answers);
}
