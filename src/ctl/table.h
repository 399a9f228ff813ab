#pragma once

#include <string>
#include <vector>

namespace braid {

/// Text in columns, two spaces apart. Numbers are aligned right: a column whose title starts with '>' (not
/// printed).
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  /// As many cells as there are titles; missing ones are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Lines with their ends and without blanks before them.
  std::string toString() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace braid
