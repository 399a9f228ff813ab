#include "gateway/control/object_writer.h"

namespace braid {

using nlohmann::json;

json RowObject::whole() const {
  json out = head;
  for (const RowList& list : lists) {
    json rows = json::array();
    for (size_t i = 0; i < list.size; ++i) rows.push_back(list.row(i));
    out[list.name] = std::move(rows);
  }
  return out;
}

std::string jsonText(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

size_t ObjectWriter::write(std::string& out, size_t most) {
  size_t written = 0;
  if (!begun_) {
    begun_ = true;
    std::string head = jsonText(object_.head);
    head.pop_back();  // the brace
    out += head;
    written = 1;
  }
  while (list_ < object_.lists.size()) {
    const RowList& list = object_.lists[list_];
    if (!isOpen_) {
      isOpen_ = true;
      bool first = list_ == 0 && object_.head.empty();
      out.append(first ? "\"" : ",\"").append(list.name).append("\":[");
    }
    for (; row_ < list.size && written < most; ++row_, ++written) {
      if (row_ > 0) out += ',';
      out += jsonText(list.row(row_));
    }
    if (row_ < list.size) return written;
    out += ']';
    isOpen_ = false;
    row_ = 0;
    ++list_;
  }
  out += '}';
  done_ = true;
  return written;
}

}  // namespace braid
