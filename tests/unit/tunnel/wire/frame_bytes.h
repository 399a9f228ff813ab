#pragma once

// Test helpers that convert frames to bytes and back.

#include <gtest/gtest.h>

#include <optional>
#include <variant>
#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/wire/frame_table.h"

namespace braid {

using Bytes = std::vector<uint8_t>;

template <typename F>
Bytes encode(const F& frame) {
  Bytes out(2048);
  Writer writer(out);
  writeFrame(writer, frame);
  EXPECT_TRUE(writer.ok());
  out.resize(writer.size());
  return out;
}

/// The only frame in these bytes.
template <typename F>
F decodeOne(const Bytes& bytes) {
  FrameReader reader(bytes);
  std::optional<WireFrame> frame = reader.next();
  EXPECT_TRUE(frame && std::holds_alternative<F>(*frame));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ok());
  return std::get<F>(*frame);
}

/// True when some frame of the datagram has that property.
inline bool malformed(const Bytes& bytes) {
  FrameReader reader(bytes);
  while (reader.next()) {
  }
  return !reader.ok();
}

}  // namespace braid
