// What is said and kept when a gateway joins: an invitation's line, the request, the answer, the
// file of invitations, and the fragments that a join writes. Accepted input must be unchanged after
// it is written and read again. The first byte of the input chooses what is fed.

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "gateway/config/config_fragments.h"
#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "gateway/state/invitations.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tests/temporary_folder.h"

namespace {

using namespace braid;
using fuzz::require;

const TemporaryFolder& folder() {
  static const TemporaryFolder folder;
  return folder;
}

void checkLine(std::string_view text) {
  auto parsed = parseInvitation(text);
  if (auto* invitation = std::get_if<Invitation>(&parsed)) {
    auto again = parseInvitation(formatInvitation(*invitation));
    auto* same = std::get_if<Invitation>(&again);
    require(same && same->addresses == invitation->addresses && same->pin == invitation->pin &&
                same->secret.bytes == invitation->secret.bytes &&
                same->expires == invitation->expires,
            "an invitation says something else when it is written again");
  } else {
    require(!std::get<std::string>(parsed).empty(), "a refusal without a reason");
  }
}

// A line with the checksum that fits to it, behind the prefix that it must have.
void checkWholeLine(std::string_view text) {
  std::string line(kInvitationPrefix);
  line += text.substr(0, kMaxInvitationLine);
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const unsigned char*>(line.data()), line.size(), hash.data());
  checkLine(line + "/" + toHex(std::span(hash).first(4)));
}

std::optional<std::vector<KeptInvitation>> readBook(std::string_view text) {
  try {
    return InvitationStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void checkRequest(ByteView bytes) {
  auto request = readRequest(bytes);
  if (!request) return;
  require(std::vector<uint8_t>(bytes.begin(), bytes.end()) == writeRequest(*request),
          "another request when it is written again");
  // The signature of the secret's owner is good for this statement alone.
  InvitationSecret secret;
  std::ranges::copy(request->signature.begin(), request->signature.begin() + 32,
                    secret.bytes.begin());
  const JoinMessage wish = wishOf(request->networks);
  JoinStatement statement{.binding = {}, .edge = {}, .concentrator = {}, .wish = wish};
  std::ranges::copy(request->id, statement.binding.begin());
  const InvitationKey key = publicKeyOf(secret);
  require(!verifyJoin(key, request->signature, statement), "a signature of nobody");
  const JoinSignature signature = signJoin(secret, statement);
  require(verifyJoin(key, signature, statement), "a signature that is refused");
  statement.edge[0] ^= 1;
  require(!verifyJoin(key, signature, statement), "a signature of something else");
}

// Writes the fragment of a gateway that has joined, and reads it back.
void checkFragment(const JoinAnswer& answer) {
  if (!isJoinName(answer.name)) return;
  const PeerFragment peer{.name = answer.name,
                          .pin = {},
                          .prefixes = answer.networks,
                          .routes = answer.networks,
                          .origin = "joined"};
  const std::string text = formatFragment(peer);
  const std::string path = fragmentPath(folder().file("peers.d"), peer.name);
  require(std::filesystem::path(path).parent_path() == folder().file("peers.d"),
          "a fragment elsewhere");
  require(writeFragment(path, text).empty(), "a fragment that is not written");
  require(readFragmentText(path) == text, "another fragment when it is read");
  ConfigFragments fragments;
  ConfigDiagnostics out("main");
  parseFragment(path, text, fragments, out);
  require(fragments.size() == 1 && out.take().empty(), "a fragment that is not valid");
  require(removeFragment(path).empty() && removeFragment(path).empty() && !readFragmentText(path),
          "a fragment that stays");
}

void checkAnswer(ByteView bytes) {
  auto answer = readAnswer(bytes);
  if (!answer) return;
  auto again = readAnswer(writeAnswer(*answer));
  require(again && again->text == answer->text && again->edge == answer->edge &&
              again->code == answer->code && again->concentrator == answer->concentrator &&
              again->networks == answer->networks,
          "another answer when it is written again");
  checkFragment(*answer);
}

// A store of invitations on this file, and a script of what happens to it.
void checkStore(std::string_view text) {
  const size_t end = std::min(text.find('\0'), text.size());
  ByteView script(reinterpret_cast<const uint8_t*>(text.data()) + end, text.size() - end);
  const auto book = readBook(text.substr(0, end));
  folder().write("invitations", std::string(text.substr(0, end)));
  InvitationStore store(folder().file("invitations"));
  try {
    store.load();
    require(store.all() == (end == 0 ? std::vector<KeptInvitation>{} : book),
            "a book that differs from its text");
  } catch (const std::runtime_error&) {
    require(!book && store.all().empty(), "a good book that is refused");
  }
  int64_t now = 1'700'000'000;
  for (script = script.subspan(std::min<size_t>(script.size(), 1)); script.size() >= 3;
       script = script.subspan(3)) {
    const int64_t number = load16(&script[1]);
    switch (script[0] % 4) {
      case 0: {
        KeptInvitation fresh;
        fresh.name = "edge" + std::to_string(script[1] % 100);
        fresh.key.fill(script[1]);
        fresh.expires = now + number;
        const bool isAdded = store.add(fresh, now);
        require(!isAdded || store.find(fresh.id()) != nullptr, "an invitation that is lost");
        break;
      }
      case 1:
        if (!store.all().empty()) {
          KeptInvitation& each = store.all()[static_cast<size_t>(number) % store.all().size()];
          require(store.find(each.id()) != nullptr, "an invitation that is not found");
          each.joined = Pin{script[1]};
          each.joinedAt = now;
          each.used = script[2] & 1;
        }
        break;
      case 2:
        now += number * 60;
        break;
      default:
        (void)store.isOpen(now);
        for (int count = 0; count < script[1] % 80; ++count) {
          KeptInvitation fresh;
          fresh.name = "n" + std::to_string(count);
          fresh.expires = now + script[2];
          if (!store.add(fresh, now)) break;
        }
    }
    require(store.all().size() <= InvitationStore::kMost, "too many invitations");
  }
  require(store.save().empty(), "a book that is not written");
  InvitationStore again(folder().file("invitations"));
  again.load();
  require(again.all() == store.all(), "another book after a restart");
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  if (size == 0) return;
  ByteView bytes(data + 1, size - 1);
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      return checkLine(text);
    case 1:
      return checkRequest(bytes);
    case 2:
      return checkAnswer(bytes);
    case 3:
      if (auto book = readBook(text)) {
        require(readBook(InvitationStore::format(*book)) == book,
                "another book when it is written again");
      }
      return;
    case 4:
      return checkWholeLine(text);
    default:
      return checkStore(text);
  }
}
