// The parsers for joining: an invitation's line, the request, the answer, and the file of
// invitations. Accepted input must be unchanged after it is written and read again. The first byte
// of the input chooses the parser.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "gateway/state/invitations.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using fuzz::require;

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

std::optional<std::vector<KeptInvitation>> readBook(std::string_view text) {
  try {
    return InvitationStore::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  if (size == 0) return;
  ByteView bytes(data + 1, size - 1);
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      return checkLine(text);
    case 1:
      if (auto request = readRequest(bytes)) {
        JoinMessage again = writeRequest(*request);
        require(std::vector<uint8_t>(bytes.begin(), bytes.end()) == again,
                "another request when it is written again");
      }
      return;
    case 2:
      if (auto answer = readAnswer(bytes)) {
        auto again = readAnswer(writeAnswer(*answer));
        require(again && again->text == answer->text && again->edge == answer->edge &&
                    again->code == answer->code && again->concentrator == answer->concentrator &&
                    again->networks == answer->networks,
                "another answer when it is written again");
      }
      return;
    default:
      if (auto book = readBook(text)) {
        require(readBook(InvitationStore::format(*book)) == book,
                "another book when it is written again");
      }
  }
}
