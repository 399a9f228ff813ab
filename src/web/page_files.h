#pragma once

#include <span>
#include <string_view>

namespace braid {

/// A file of the web page, embedded in the program.
struct PageFile {
  std::string_view path;  ///< "/style.css"
  std::string_view content;
};
extern const std::span<const PageFile> kPageFiles;

}  // namespace braid
