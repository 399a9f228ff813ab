#pragma once

// The screen of `braidctl top`, made from the daemon's answers.

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

/// The daemon's answers at one time.
struct TopLook {
  double at = 0;          ///< seconds, by any clock
  nlohmann::json status;  ///< answer to {"cmd":"status"}
  nlohmann::json flows;   ///< answer to {"cmd":"flows"}; null: not asked for
};

class TopScreen {
 public:
  /// Seconds over which losses are counted.
  static constexpr double kWindow = 10;

  void add(TopLook look);
  /// At most `rows` lines of at most `columns` characters.
  std::vector<std::string> lines(TopView view, size_t rows, size_t columns) const;

 private:
  std::deque<TopLook> looks_;  ///< those of the window, oldest first
};

}  // namespace braid
