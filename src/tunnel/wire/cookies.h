#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/wire/handshake_seal.h"

namespace braid {

/// Makes and checks the cookies by which initiators show that they receive at the address that they name:
/// HMAC-SHA256 over address and port, cut to 16 bytes, under a secret that lives for one rotation at least.
class Cookies {
 public:
  static constexpr Duration kRotation = 60s;
  using Secret = std::array<uint8_t, 32>;

  Cookies() = default;
  ~Cookies();
  Cookies(const Cookies&) = delete;
  Cookies& operator=(const Cookies&) = delete;

  /// Call before the others. `draw(ByteSpan)` fills bytes that nobody can foresee; asked when a secret is due.
  template <typename F>
  void rotate(Time now, F&& draw) {
    if (now < nextRotation_) return;
    bool slept = now >= nextRotation_ + kRotation;
    previous_ = current_;
    if (slept) draw(ByteSpan(previous_));
    draw(ByteSpan(current_));
    nextRotation_ = now + kRotation;
  }
  HandshakeCookie make(const Endpoint& from) const { return make(current_, from); }
  /// True for what make() gave this address under the current or the previous secret.
  bool check(const Endpoint& from, const HandshakeCookie& cookie) const;

 private:
  static HandshakeCookie make(const Secret& secret, const Endpoint& from);

  Secret current_{}, previous_{};
  Time nextRotation_ = Time::min();
};

}  // namespace braid
