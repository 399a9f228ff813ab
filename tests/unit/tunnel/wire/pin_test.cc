#include "tunnel/wire/handshake_envelope.h"

#include <gtest/gtest.h>

#include <numeric>

namespace braid::pin_test {
namespace {

Pin counting() {
  Pin pin;
  std::iota(pin.begin(), pin.end(), uint8_t{0});
  return pin;
}

// base64 of 00 01 .. 1f
constexpr std::string_view kText = "sha256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

TEST(Pin, text) {
  EXPECT_EQ(formatPin(counting()), kText);
  EXPECT_EQ(parsePin(kText), counting());
  Pin ones;
  ones.fill(0xff);
  EXPECT_EQ(parsePin(formatPin(ones)), ones);
}

TEST(Pin, refusesEverythingElse) {
  std::string text(kText);
  EXPECT_FALSE(parsePin(""));
  EXPECT_FALSE(parsePin("sha256:"));
  EXPECT_FALSE(parsePin(text.substr(7)));
  EXPECT_FALSE(parsePin("SHA256:" + text.substr(7)));
  EXPECT_FALSE(parsePin(text + "="));
  EXPECT_FALSE(parsePin(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(parsePin(" " + text.substr(0, text.size() - 1)));
  EXPECT_FALSE(parsePin("sha256: " + text.substr(7, 42) + "="));
  for (char bad : {'-', '_', ' ', '\n', '=', '\0'}) {
    std::string changed = text;
    changed[10] = bad;
    EXPECT_FALSE(parsePin(changed)) << int{bad};
  }
  std::string spareBits = text;
  spareBits[49] = '9';  // the same byte as '8', with unused bits set
  EXPECT_FALSE(parsePin(spareBits));
}

}  // namespace
}  // namespace braid::pin_test
