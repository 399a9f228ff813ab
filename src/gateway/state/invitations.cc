#include "gateway/state/invitations.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/bytes.h"
#include "gateway/config/state_file.h"
#include "host/linux/files.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

using InvitationJson = nlohmann::json;

constexpr size_t kMaxInvitationBook = 1 << 20;

InvitationJson invitationJson(const KeptInvitation& kept) {
  InvitationJson networks = InvitationJson::array();
  for (const Prefix& network : kept.networks) networks.push_back(network.toString());
  return {
      {"name", kept.name},
      {"key", toHex(kept.key)},
      {"expires", kept.expires},
      {"networks", std::move(networks)},
      {"joined", kept.joined ? InvitationJson(formatPin(*kept.joined)) : InvitationJson(nullptr)},
      {"joined_at", kept.joinedAt},
      {"used", kept.used}};
}

KeptInvitation invitationOf(const InvitationJson& j) {
  KeptInvitation out;
  out.name = j.at("name").get<std::string>();
  if (!fromHex(j.at("key").get<std::string>(), out.key)) throw std::runtime_error("key");
  out.expires = wholeOf<int64_t>(j.at("expires"));
  for (const InvitationJson& network : j.at("networks")) {
    std::optional<Prefix> prefix = Prefix::parse(network.get<std::string>());
    if (!prefix) throw std::runtime_error("network");
    out.networks.push_back(*prefix);
  }
  if (const InvitationJson& joined = j.at("joined"); !joined.is_null()) {
    out.joined = parsePin(joined.get<std::string>());
    if (!out.joined) throw std::runtime_error("pin");
  }
  out.joinedAt = wholeOf<int64_t>(j.at("joined_at"));
  out.used = j.at("used").get<bool>();
  return out;
}

// When an invitation is forgotten: kRemember after it was used or has expired.
int64_t rememberedUntil(const KeptInvitation& kept) {
  int64_t over = kept.used ? std::min(kept.joinedAt, kept.expires) : kept.expires;
  return over > INT64_MAX - InvitationStore::kRemember ? INT64_MAX
                                                       : over + InvitationStore::kRemember;
}

}  // namespace

std::vector<KeptInvitation> InvitationStore::parse(std::string_view text) {
  const InvitationJson book = InvitationJson::parse(text);
  std::vector<KeptInvitation> all;
  for (const InvitationJson& each : book.at("invitations")) {
    if (all.size() == kMost) break;
    all.push_back(invitationOf(each));
  }
  return all;
}

std::string InvitationStore::format(const std::vector<KeptInvitation>& all) {
  InvitationJson list = InvitationJson::array();
  for (const KeptInvitation& each : all) list.push_back(invitationJson(each));
  return InvitationJson{{"invitations", std::move(list)}}.dump() + "\n";
}

void InvitationStore::load() {
  all_.clear();
  std::string text = readStateFile(path_, kMaxInvitationBook);
  try {
    if (!text.empty()) all_ = parse(text);
  } catch (const std::exception&) {
    throw std::runtime_error(path_ + " is no list of invitations, it is not used; invite anew");
  }
}

std::string InvitationStore::save() const {
  return writeDurableFile(path_, format(all_), 0600);
}

KeptInvitation* InvitationStore::find(const InvitationId& id) {
  auto found =
      std::ranges::find_if(all_, [&](const KeptInvitation& each) { return each.id() == id; });
  return found == all_.end() ? nullptr : &*found;
}

bool InvitationStore::isOpen(int64_t now) const {
  return std::ranges::any_of(
      all_, [&](const KeptInvitation& each) { return rememberedUntil(each) > now; });
}

// Keeps an invitation whose gateway has joined but not come up, because nobody would remove the
// peer's fragment without the invitation.
void InvitationStore::forgetOld(int64_t now) {
  std::erase_if(all_, [&](const KeptInvitation& each) {
    return rememberedUntil(each) <= now && !each.isUnsettled();
  });
  // The oldest used or expired invitations make room.
  while (all_.size() >= kMost) {
    auto over = std::ranges::find_if(all_, [&](const KeptInvitation& each) {
      return (each.used || each.expires <= now) && !each.isUnsettled();
    });
    if (over == all_.end()) return;
    all_.erase(over);
  }
}

bool InvitationStore::add(KeptInvitation invitation, int64_t now) {
  std::erase_if(all_, [&](const KeptInvitation& each) { return each.name == invitation.name; });
  forgetOld(now);
  if (all_.size() >= kMost) return false;
  all_.push_back(std::move(invitation));
  return true;
}

}  // namespace braid
