// The output of braidctl for any JSON that a daemon may answer: it must not contain terminal
// control sequences.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ctl/views/views.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;

void checkText(std::string_view text) {
  for (const char c : text) CHECK(c == '\n' || static_cast<unsigned char>(c) >= ' ');
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  const auto answer = nlohmann::json::parse(data, data + size, nullptr, false);
  if (!answer.is_object()) return;  // ask() returns only such values
  for (auto* view : {statusText, verboseStatusText, peersText, pathsText, recoveryText})
    checkText(view(answer));
  // The same answer twice: what is there has a rate of nothing, as an idle flow has.
  for (const FlowLook& last : {FlowLook{}, FlowLook{1, answer}})
    checkText(flowsText({2, answer}, last, {}, true));
  checkText(explainText(explain({answer, {answer}, {answer}}, 0, 1e9)));
  TopScreen screen;
  screen.add({1, answer, answer});
  screen.add({2, answer, answer});
  for (const TopView view : {TopView::kPaths, TopView::kPeers, TopView::kFlows})
    for (const std::string& line : screen.lines(view, 20, 80)) checkText(line);
}
