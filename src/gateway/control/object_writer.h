#pragma once

// A JSON object that may have long lists is written a few rows at a time: who writes an answer between packets must
// not keep them waiting, however much there is to tell.

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace braid {

/// A list in an object. Rows are made when they are written.
struct RowList {
  const char* name = nullptr;
  size_t size = 0;
  std::function<nlohmann::json(size_t)> row;
};

/// An object: what is short, and lists beside.
struct RowObject {
  nlohmann::json head = nlohmann::json::object();
  std::vector<RowList> lists;

  /// All of it at once.
  nlohmann::json whole() const;
};

/// JSON on one line. Texts may come from outside (interfaces); bytes that are no UTF-8 are replaced.
std::string jsonText(const nlohmann::json& value);

/// Writes one object.
class ObjectWriter {
 public:
  explicit ObjectWriter(RowObject object) : object_(std::move(object)) {}

  /// Appends the next rows to `out`, at most so many; the head counts as one. Returns how many rows these were.
  size_t write(std::string& out, size_t most);
  /// The whole object is written.
  bool done() const { return done_; }

 private:
  RowObject object_;
  bool begun_ = false, done_ = false;
  bool isOpen_ = false;        ///< the list has begun
  size_t list_ = 0, row_ = 0;  ///< the row that comes next
};

}  // namespace braid
