#pragma once

// Frames as bytes and back, for the tests of the wire format.

#include <gtest/gtest.h>

#include <optional>
#include <variant>
#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/wire/frame_reader.h"

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

/// The one frame that these bytes hold.
template <typename F>
F decodeOne(const Bytes& bytes) {
  FrameReader reader(bytes);
  std::optional<WireFrame> frame = reader.next();
  EXPECT_TRUE(frame && std::holds_alternative<F>(*frame));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ok());
  return std::get<F>(*frame);
}

/// Whether some frame of the datagram is.
inline bool malformed(const Bytes& bytes) {
  FrameReader reader(bytes);
  while (reader.next()) {
  }
  return !reader.ok();
}

}  // namespace braid
