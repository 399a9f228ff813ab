#pragma once

// The screen of `braidctl top`, from the daemon's answers.

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace braid {

enum class TopView : uint8_t { kPaths, kPeers, kFlows };
constexpr TopView nextView(TopView view) {
  return view == TopView::kPaths   ? TopView::kPeers
         : view == TopView::kPeers ? TopView::kFlows
                                   : TopView::kPaths;
}

/// What the daemon said at one time.
struct TopLook {
  double at = 0;          ///< seconds, by any clock
  nlohmann::json status;  ///< of {"cmd":"status"}
  nlohmann::json flows;   ///< of {"cmd":"flows"}; null: not asked for
};

class TopScreen {
 public:
  /// Losses are those of so many seconds.
  static constexpr double kWindow = 10;

  void add(TopLook look);
  /// At most so many lines of so many characters.
  std::vector<std::string> lines(TopView view, size_t rows, size_t columns) const;

 private:
  std::deque<TopLook> looks_;  ///< oldest first: those of the window
};

}  // namespace braid
