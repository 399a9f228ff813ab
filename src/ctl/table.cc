#include "ctl/table.h"

#include <algorithm>

#include "ctl/format.h"

namespace braid {
namespace {

// Characters, not bytes, of UTF-8 text.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::toString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < titles_.size(); ++i) {
    size_t widest = width(titles_[i]);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string pad(widths[i] - width(cells[i]), ' ');
      out += (i > 0 ? "  " : "") + (right_[i] ? pad + cells[i] : cells[i] + pad);
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace braid
