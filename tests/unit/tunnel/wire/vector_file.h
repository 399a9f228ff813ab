#pragma once

// Reads the files of tests/vectors: a row of words for each vector, byte strings as hexadecimal
// digits, "-" for an empty one. Files that include this are compiled with BRAID_VECTORS.

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/tunnel/wire/hex.h"

namespace braid::test {

struct VectorRow {
  std::string number;
  bool isValid;
  std::vector<std::vector<uint8_t>> values;
};

/// Throws std::runtime_error when a row has another number of values, or the file has no row.
inline std::vector<VectorRow> vectorRows(const std::string& name, size_t values) {
  std::ifstream file(BRAID_VECTORS "/" + name);
  std::vector<VectorRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string number, verdict, word;
    words >> number >> verdict;
    VectorRow row{number, verdict == "valid", {}};
    while (words >> word) row.values.push_back(fromHex(word == "-" ? "" : word));
    if (row.values.size() != values || !(row.isValid || verdict == "invalid"))
      throw std::runtime_error(name + ": the row of vector " + number + " is damaged");
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw std::runtime_error(name + " has no vectors");
  return rows;
}

}  // namespace braid::test
