#include "gateway/join_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <ranges>
#include <stdexcept>

#include "gateway/join/address_plan.h"
#include "host/system.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr const char* kCannotChange = "the concentrator could not change its configuration: ";
constexpr const char* kUnapplied =
    "the concentrator's configuration was edited and is not applied yet; run 'braidctl reload' "
    "there";

JoinAnswer refusal(JoinCode code, std::string text = {}) {
  JoinAnswer out;
  out.code = code;
  out.text = std::move(text);
  return out;
}

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

JoinService::JoinService(const Config& config, const Pin& own, LogLimiter& log,
                         JoinEnvironment environment)
    : config_(config), own_(own), log_(log), environment_(std::move(environment)) {}

void JoinService::begin(Time now) {
  if (config_.listen.empty() || config_.state.empty() || config_.peersFolder.empty()) return;
  book_.emplace(config_.state + ".invitations");
  try {
    book_->load();
  } catch (const std::exception& e) {
    log_.warn(LogKind::kOther, now, e.what());
  }
  for (const KeptInvitation& each : book_->all()) {
    if (each.isUnsettled()) unsettled_[each.name] = now;
  }
  tick_ = nextTick(now);
}

Time JoinService::nextTick(Time now) const {
  bool any = unsaved_ || std::ranges::any_of(book_->all(), &KeptInvitation::isUnsettled);
  return any ? now + kTick : kNever;
}

// ---- invitations

bool JoinService::isUnsettled(const std::string& name) const {
  return std::ranges::any_of(
      book_->all(), [&](const KeptInvitation& i) { return i.name == name && i.isUnsettled(); });
}

std::string JoinService::refuseInvitation(const InviteRequest& request) const {
  if (config_.listen.empty())
    return "this gateway has no 'listen', so nobody can come to it; invite at the concentrator";
  if (!book_) return "this gateway keeps no state; set 'state' and 'peers-folder', and restart it";
  if (config_.tunnel.mode == TunnelOptions::Mode::kTap)
    return "a bridge (TAP) gives no addresses; add the peer by hand (docs/operations.md, "
           "\"Setup, invite and join\")";
  if (!isJoinName(request.name))
    return "NAME must be 1 to 32 letters, digits, dots, dashes or underscores";
  if (request.lifetime < InviteRequest::kShortest || request.lifetime > InviteRequest::kLongest)
    return "an invitation is good for one minute to 30 days";
  bool taken = std::ranges::any_of(
      config_.peers, [&](const PeerConfig& p) { return p.options.name == request.name; });
  if (taken && !isUnsettled(request.name))
    return "there is a gateway '" + request.name +
           "' already; choose another name, or remove it from " + config_.path + " or " +
           config_.peersFolder + " and reload";
  auto room = freeAddresses(config_, request.name);
  if (auto* problem = std::get_if<std::string>(&room)) return *problem;
  return {};
}

std::variant<Invitation, std::string> JoinService::invite(const InviteRequest& request,
                                                          std::vector<HostPort> addresses) {
  if (std::string problem = refuseInvitation(request); !problem.empty()) return problem;
  KeptInvitation kept;
  kept.name = request.name;
  kept.networks = config_.device.networks;
  if (!request.networks.empty()) kept.networks.clear();
  for (const std::string& text : request.networks) {
    std::optional<Prefix> network = Prefix::parse(text);
    if (!network || network->toString() != text)
      return "'" + text + "' is no network; write one such as 10.1.0.0/16, without host bits";
    kept.networks.push_back(*network);
  }
  if (kept.networks.size() > kMaxJoinNetworks)
    return "there are more than 32 networks; name fewer with --network";
  Invitation out;
  for (const std::string& text : request.addresses) {
    std::optional<HostPort> address = parseHostPort(text);
    if (!address) return "'" + text + "' is no HOST:PORT; write one such as gw.example.net:4433";
    out.addresses.push_back(*address);
  }
  if (out.addresses.empty()) out.addresses = std::move(addresses);
  if (out.addresses.empty())
    return std::string("no address of this gateway is known; name one with --address HOST:PORT");
  if (out.addresses.size() > kMaxInvitationAddresses)
    return std::string("there are more than 8 addresses");
  out.pin = own_;
  out.secret = InvitationSecret::draw();
  out.expires = environment_.wall() +
                std::chrono::duration_cast<std::chrono::seconds>(request.lifetime).count();
  kept.key = publicKeyOf(out.secret);
  kept.expires = out.expires;
  InvitationStore next = *book_;
  if (!next.add(std::move(kept), environment_.wall()))
    return "there are " + std::to_string(InvitationStore::kMost) +
           " open invitations already; wait until some are used";
  // The fragment is removed first: without its record, it would be taken for another gateway's.
  if (isUnsettled(request.name)) {
    std::string problem = change(fragmentPath(config_.peersFolder, request.name), std::nullopt);
    if (!problem.empty()) return problem;
  }
  if (std::string problem = next.save(); !problem.empty()) return problem;
  *book_ = std::move(next);
  std::erase_if(rations_, [&](const auto& entry) { return !book_->find(entry.first); });
  unsettled_.erase(request.name);
  spdlog::info("'{}' is invited until {}", request.name, formatUtc(out.expires));
  return out;
}

std::string JoinService::notesOn(const InviteRequest& request) const {
  std::vector<Prefix> routes;
  for (const std::string& text : request.networks)
    if (auto network = Prefix::parse(text)) routes.push_back(*network);
  std::string out;
  if (std::string left = familyLeftOut(routes); !left.empty())
    out = left +
          " of that gateway leaves in clear, past the tunnel; '--network 0.0.0.0/0 --network ::/0' "
          "takes both";
  if (std::string edits = environment_.unapplied(); !edits.empty())
    out +=
        (out.empty() ? "" : "; ") +
        ("this gateway runs another configuration than its files hold, and a join does not apply "
         "them: " +
         edits);
  return out;
}

// ---- gateways that show an invitation

std::optional<JoinMessage> JoinService::onRequest(const Pin& pin, const JoinBinding& binding,
                                                  ByteView request, Time now) {
  auto isOf = [&](const auto& entry) { return entry.first == binding; };
  auto known = std::ranges::find_if(answers_, isOf);
  if (known != answers_.end()) return known->second;
  if (std::ranges::any_of(waiting_, [&](const Waiting& w) { return w.binding == binding; }))
    return std::nullopt;
  std::optional<JoinRequest> read = readRequest(request);
  if (!book_ || !read) return std::nullopt;
  const KeptInvitation* kept = book_->find(read->id);
  if (kept && !rations_[read->id].proofs.take(kProofs, now)) return std::nullopt;
  JoinAnswer answer = check(pin, binding, *read);
  if (answer.code == JoinCode::kJoined) {
    if (waiting_.size() < kMostWaiting && mayChange(*kept, now))
      waiting_.push_back({pin, binding, std::move(*read)});
    return std::nullopt;
  }
  if (answer.code == JoinCode::kUnknown)
    log_.warn(LogKind::kHandshake, now,
              "who has the pin " + formatPin(pin) + " wants to join with a wrong secret");
  return writeAnswer(answer);
}

bool JoinService::mayChange(const KeptInvitation& invitation, Time now) {
  TokenBucket& own = rations_[invitation.id()].changes;
  return own.availableAt(kOwnChanges, 1) <= now &&
         (!invitation.joined || changes_.take(kChanges, now)) && own.take(kOwnChanges, now);
}

void JoinService::keepAnswer(const JoinBinding& binding, const JoinAnswer& answer) {
  answers_.emplace_back(binding, writeAnswer(answer));
  if (answers_.size() > kMostAnswers) answers_.pop_front();
}

// kJoined: the request may proceed. Only a gateway that proves the secret is told that its
// invitation is used or expired.
JoinAnswer JoinService::check(const Pin& pin, const JoinBinding& binding,
                              const JoinRequest& request) {
  const KeptInvitation* kept = book_->find(request.id);
  JoinMessage wish = wishOf(request.networks);
  if (!kept || !verifyJoin(kept->key, request.signature, {binding, pin, own_, wish}))
    return refusal(JoinCode::kUnknown);
  if (kept->used) return refusal(JoinCode::kUsed);
  if (kept->expires <= environment_.wall()) return refusal(JoinCode::kExpired);
  return refusal(JoinCode::kJoined);
}

void JoinService::turn(Time now) {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const Waiting& next = waiting_.front();
    keepAnswer(next.binding, join(next, now));
    tick_ = std::min(tick_, now + kTick);
  }
  if (tick_ > now) return;
  withdrawLate(now);
  if (unsaved_) save();
  tick_ = nextTick(now);
}

// Checks the request again, because other gateways may have joined since it came.
JoinAnswer JoinService::join(const Waiting& waiting, Time now) {
  JoinAnswer answer = check(waiting.pin, waiting.binding, waiting.request);
  if (answer.code != JoinCode::kJoined) return answer;
  KeptInvitation& invitation = *book_->find(waiting.request.id);
  const std::string& name = invitation.name;
  const std::string file = fragmentPath(config_.peersFolder, name);
  for (const PeerConfig& peer : config_.peers) {
    if (peer.options.pin == waiting.pin && peer.options.name != name)
      return refusal(JoinCode::kRefused,
                     "this gateway has joined as '" + peer.options.name + "' before");
    bool isOurs = peer.file == file && invitation.joined;
    if (peer.options.name == name && !isOurs)
      return refusal(JoinCode::kRefused,
                     "the name '" + name + "' was given to another gateway; invite again");
  }
  if (!invitation.joined && readFragmentText(file))
    return refusal(JoinCode::kRefused, "the concentrator has a file of that name, " + file +
                                           ", which was not applied: reload or remove it there");
  if (waiting.pin == own_) return refusal(JoinCode::kRefused, "a gateway cannot join itself");
  const std::vector<Prefix>& wanted = waiting.request.networks;
  try {
    std::string problem =
        refuseNetworks(wanted, invitation.networks, environment_.reached(), config_, name);
    if (!problem.empty()) return refusal(JoinCode::kNetworks, std::move(problem));
  } catch (const SystemError& e) {
    spdlog::error("{}", e.what());
    return refusal(JoinCode::kRefused, "the concentrator cannot read its own networks; try again");
  }
  answer = takeIn(invitation, waiting.pin, wanted);
  if (answer.code == JoinCode::kJoined) unsettled_[name] = now;
  return answer;
}

JoinAnswer JoinService::takeIn(KeptInvitation& invitation, const Pin& pin,
                               const std::vector<Prefix>& networks) {
  auto room = freeAddresses(config_, invitation.name);
  if (auto* problem = std::get_if<std::string>(&room)) return refusal(JoinCode::kRefused, *problem);
  JoinAnswer answer = refusal(JoinCode::kJoined);
  answer.name = invitation.name;
  answer.edge = std::get<std::vector<InterfaceAddress>>(room);
  answer.networks = invitation.networks;
  for (const InterfaceAddress& edge : answer.edge) {
    for (const InterfaceAddress& own : config_.device.addresses) {
      if (networkOf(own) == networkOf(edge)) answer.concentrator.push_back(own.address);
    }
  }
  if (answer.concentrator.size() > kMaxJoinAddresses) answer.concentrator.resize(kMaxJoinAddresses);
  PeerFragment fragment{invitation.name,
                        pin,
                        {},
                        networks,
                        "Joined at " + formatUtc(environment_.wall()) +
                            ". To forget this gateway, remove the file and run 'braidctl reload'."};
  for (const InterfaceAddress& edge : answer.edge)
    fragment.prefixes.push_back({edge.address, edge.address.bits()});
  fragment.prefixes.insert(fragment.prefixes.end(), networks.begin(), networks.end());
  if (std::string problem = record(invitation, pin, fragment); !problem.empty())
    return refusal(JoinCode::kRefused, std::move(problem));
  spdlog::info("'{}' joins with the pin {}", invitation.name, formatPin(pin));
  if (std::string edits = environment_.unapplied(); !edits.empty()) {
    spdlog::warn("'{}' has joined, and nothing else was applied: {}", invitation.name, edits);
    answer.text = kUnapplied;
  }
  return answer;
}

// Records the join, first in the invitation file and then in a fragment. Returns what is wrong;
// both are then as before.
std::string JoinService::record(KeptInvitation& invitation, const Pin& pin,
                                const PeerFragment& fragment) {
  const KeptInvitation before = invitation;
  invitation.joined = pin;
  invitation.joinedAt = environment_.wall();
  if (std::string problem = book_->save(); !problem.empty()) {
    spdlog::error("{}", problem);
    invitation = before;
    return kCannotChange + problem;
  }
  unsaved_ = false;
  std::string problem =
      change(fragmentPath(config_.peersFolder, invitation.name), formatFragment(fragment));
  if (problem.empty()) return problem;
  invitation = before;
  save();
  return problem;
}

// Writes or removes the fragment, and puts that into effect. When that fails, restores the file's
// earlier content.
std::string JoinService::change(const std::string& path, const std::optional<std::string>& text) {
  std::optional<std::string> before = readFragmentText(path);
  auto put = [&](const std::optional<std::string>& content) {
    return content ? writeFragment(path, *content) : removeFragment(path);
  };
  std::string problem = put(text);
  if (problem.empty()) problem = environment_.apply(path, text);
  if (problem.empty()) return {};
  spdlog::error("the configuration with {} does not hold: {}", path, problem);
  if (readFragmentText(path) == before) return kCannotChange + firstLine(problem);
  if (std::string again = put(before); !again.empty()) {
    spdlog::error("{}", again);
    removeFragment(path);  // the next daemon would not start with it
  }
  return kCannotChange + firstLine(problem);
}

void JoinService::withdrawLate(Time now) {
  bool changed = false;
  for (KeptInvitation& each : book_->all()) {
    if (!each.isUnsettled() || now - unsettled_.try_emplace(each.name, now).first->second < kGrace)
      continue;
    if (!change(fragmentPath(config_.peersFolder, each.name), std::nullopt).empty()) continue;
    spdlog::warn(
        "'{}' has joined and never come: it is forgotten, and its invitation is open again",
        each.name);
    each.joined.reset();
    each.joinedAt = 0;
    unsettled_.erase(each.name);
    changed = true;
  }
  if (changed) save();
}

void JoinService::onPeers(const std::set<std::string>& up) {
  if (!book_) return;
  bool changed = false;
  for (KeptInvitation& each : book_->all()) {
    if (!each.isUnsettled() || !up.contains(each.name)) continue;
    each.used = changed = true;
    unsettled_.erase(each.name);
    spdlog::info("'{}' has come: its invitation is used", each.name);
  }
  if (changed) save();
}

// Writes the invitations; a failed write is tried again at each tick.
void JoinService::save() {
  std::string problem = book_->save();
  if (!problem.empty() && !unsaved_)
    spdlog::warn(
        "{}; it is tried again: until then, invitations that are used are open again after a "
        "restart",
        problem);
  unsaved_ = !problem.empty();
}

}  // namespace braid
