#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client.h"
#include "ctl/fields.h"
#include "ctl/join_verbs.h"
#include "gateway/config/units.h"
#include "gateway/control/invite_request.h"
#include "gateway/join/invitation.h"

namespace braid {

void invite(const InviteOptions& options, std::ostream& out, std::ostream& err) {
  std::optional<Duration> lifetime = parseDuration(options.validFor);
  if (!lifetime || *lifetime < InviteRequest::kShortest || *lifetime > InviteRequest::kLongest)
    throw std::runtime_error("--valid-for must be a time from 1min to 30d, such as 2h");
  nlohmann::json answer = askWith(findSocket(options.socket), "invite",
                                  {{"name", options.name},
                                   {"addresses", options.addresses},
                                   {"networks", options.networks},
                                   {"seconds", static_cast<uint64_t>(*lifetime / 1s)}});
  std::string line = textOf(answer, "line");
  auto parsed = parseInvitation(line);
  auto* invitation = std::get_if<Invitation>(&parsed);
  if (!invitation) throw std::runtime_error("the daemon gives no invitation; is it of another release?");
  if (options.json) {
    answer["expires_unix_s"] = invitation->expires;
    out << prettyJson(answer);
    return;
  }
  out << line << '\n';
  err << "Good for one gateway, until " << formatUtc(invitation->expires)
      << ". At that gateway run 'braidctl join' and paste the line: it is a secret.\n";
  std::string note = answer.value("note", nlohmann::json()).is_string() ? textOf(answer, "note") : "";
  if (!note.empty()) err << "Note: " << note << "\n";
}

}  // namespace braid
