#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "inet/endpoint.h"

namespace braid {

/// Makes and checks the cookies of RFC 6347 section 4.2.1: HMAC-SHA256 over the stranger's address and port,
/// under a secret that lives for one to two rotations.
class DtlsCookies {
 public:
  static constexpr Duration kRotation = 60s;
  using Cookie = std::array<uint8_t, 32>;

  DtlsCookies();
  ~DtlsCookies();
  DtlsCookies(const DtlsCookies&) = delete;
  DtlsCookies& operator=(const DtlsCookies&) = delete;

  /// Call before the others with the present time.
  void rotate(Time now);
  Cookie make(const Endpoint& from) const { return make(current_, from); }
  /// True for what make() gave this address under the current or the previous secret.
  bool check(const Endpoint& from, ByteView cookie) const;

 private:
  using Secret = std::array<uint8_t, 32>;
  static Cookie make(const Secret& secret, const Endpoint& from);
  static Secret fresh();

  Secret current_, previous_;
  Time nextRotation_{};
};

}  // namespace braid
