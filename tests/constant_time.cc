// Compares secrets with guesses while valgrind watches. The secrets' bytes are marked as undefined,
// and valgrind reports each branch and each address that depends on such bytes: what it reports
// takes a time by which a guesser learns about the secret. With "--leak" the program compares a
// secret byte by byte instead, which valgrind must report.
//
//     valgrind --error-exitcode=9 constant_time [--leak]

#include <valgrind/memcheck.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "inet/addresses.h"
#include "tunnel/wire/aead.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"
#ifdef BRAID_HAS_WEB
#include "web/site.h"
#endif

namespace {

using namespace braid;

int failed = 0;

template <typename Bytes>
void hide(Bytes& bytes) {
  (void)VALGRIND_MAKE_MEM_UNDEFINED(bytes.data(), bytes.size());
}

/// The guesser is told the verdict, so valgrind may see branches on it.
void expect(bool verdict, bool wanted, const char* what) {
  (void)VALGRIND_MAKE_MEM_DEFINED(&verdict, sizeof verdict);
  if (verdict == wanted) return;
  std::printf("%s: the verdict is wrong\n", what);
  ++failed;
}

void checkCookies() {
  const Endpoint from = *Endpoint::parse("192.0.2.7:4433");
  Cookies cookies;
  cookies.rotate(Time(), [](ByteSpan secret) {
    std::memset(secret.data(), 7, secret.size());
    hide(secret);
  });
  HandshakeCookie cookie = cookies.make(from);
  (void)VALGRIND_MAKE_MEM_DEFINED(cookie.data(), cookie.size());  // it was sent
  expect(cookies.check(from, cookie), true, "cookie");
  cookie.back() ^= 1;
  expect(cookies.check(from, cookie), false, "another cookie");
}

void checkReturnToken() {
  SessionSecrets secrets{};
  hide(secrets.responderSecret);
  const RestartNotice own = restartNoticeOf(secrets);
  RestartNotice guess = own;
  expect(own == guess, true, "return token");
  (void)VALGRIND_MAKE_MEM_DEFINED(guess.token.data(), guess.token.size());
  guess.token.front() ^= 1;
  expect(own == guess, false, "another return token");
}

void checkTag() {
  const std::array<uint8_t, 16> key{1, 2, 3};
  const std::array<uint8_t, 20> plain{4, 5};
  const std::unique_ptr<AeadCipher> cipher = makeIpsecMbCipher(AeadKind::kAes128Gcm, key);
  if (!cipher) return;  // OpenSSL tells its own verdict by a branch, so this cannot be seen there
  std::array<uint8_t, plain.size() + kTagSize> box;
  const ByteView piece = plain;
  expect(cipher->seal({}, {}, {&piece, 1}, box.data()), true, "sealing");
  hide(box);  // whoever forges a tag must not learn how much of it is right
  expect(cipher->open({}, {}, ByteSpan(box).first(plain.size())), true, "tag");
}

#ifdef BRAID_HAS_WEB
void checkWebToken() {
  std::string token = "a token that is long enough";
  const std::string guess = token;
  hide(token);
  const Access access({}, token);
  expect(access.isLetIn("Bearer " + guess), true, "token");
  expect(access.isLetIn("Bearer " + guess.substr(1)), false, "another token");
}
#endif

void leak() {
  std::array<uint8_t, 16> secret{1, 2, 3}, guess{1, 2, 4};
  hide(secret);
  for (size_t i = 0; i < secret.size(); ++i)
    if (secret[i] != guess[i]) return;
  ++failed;
}

}  // namespace

int main(int argc, char** argv) {
  if (!RUNNING_ON_VALGRIND) {
    std::puts("constant_time: run it under valgrind");
    return 2;
  }
  if (argc == 2 && std::strcmp(argv[1], "--leak") == 0) {
    leak();
    return failed;
  }
  checkCookies();
  checkReturnToken();
  checkTag();
#ifdef BRAID_HAS_WEB
  checkWebToken();
#endif
  return failed;
}
