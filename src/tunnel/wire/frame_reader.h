#pragma once

// Reads the frames of a datagram (docs/protocol.md section 5).

#include <optional>

#include "base/bytes.h"
#include "tunnel/wire/frame_traits.h"

namespace braid {

/// Reads the frames of an opened datagram one by one, skipping PADDING. Payloads are views into the datagram.
class FrameReader {
 public:
  explicit FrameReader(ByteView frames) : reader_(frames) {}
  /// The next frame; nullopt at the end or at a malformed or unknown frame (then ok() is false).
  std::optional<WireFrame> next();
  bool ok() const { return ok_; }

 private:
  Reader reader_;
  bool ok_ = true;
};

}  // namespace braid
