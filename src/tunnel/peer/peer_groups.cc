#include "tunnel/peer/peer_groups.h"

#include <algorithm>
#include <utility>

#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_set.h"

namespace braid {

void PeerGroups::onPeersChanged(Time now) {
  std::vector<Group> before = std::exchange(groups_, {});
  auto formerOf = [&](const std::string& name) {
    return std::find_if(before.begin(), before.end(),
                        [&](const Group& g) { return g.name == name; });
  };
  peers_.forEach([&](Peer& peer) {
    peer.inUse = true;
    const std::string& name = peer.options().group;
    if (name.empty()) return;
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const Group& g) { return g.name == name; });
    if (group == groups_.end()) group = groups_.insert(group, {.name = name, .members = {}});
    Member member{.peer = &peer, .wait = options_.returnAfter};
    if (auto former = formerOf(name); former != before.end()) {
      for (const Member& m : former->members)
        if (m.peer == &peer) member = m;
      if (former->members[former->used].peer == &peer) group->used = group->members.size();
    }
    peer.group = static_cast<size_t>(group - groups_.begin());
    group->members.push_back(member);
  });
  for (Group& group : groups_) {
    for (size_t i = 0; i < group.members.size(); ++i)
      group.members[i].peer->inUse = i == group.used;
    auto former = formerOf(group.name);
    bool stays = former != before.end() &&
                 former->members[former->used].peer == group.members[group.used].peer;
    group.lostAt = stays ? former->lostAt : now + kFirstAlone;
    update(group, now);
  }
}

void PeerGroups::onChange(const Peer& peer, Time now) {
  if (!peer.options().group.empty()) update(groups_[peer.group], now);
}

void PeerGroups::onTimer(Time now) {
  for (Group& group : groups_)
    if (deadline(group) <= now) update(group, now);
}

Time PeerGroups::nextDeadline() const {
  Time next = kNever;
  for (const Group& group : groups_) next = std::min(next, deadline(group));
  return next;
}

Time PeerGroups::deadline(const Group& group) const {
  if (group.lostAt == kNever) return returnAt(group);
  if (group.decideAt != kNever) return group.decideAt;
  bool any = std::any_of(group.members.begin(), group.members.end(),
                         [](const Member& m) { return m.usableSince != kNever; });
  if (!any) return kNever;  // the next peer that becomes usable calls onChange()
  return group.askedAt == kNever ? group.lostAt : group.askedAt + kAskAgain;
}

// When a peer before the one in use may take over again; kNever: none may.
Time PeerGroups::returnAt(const Group& group) const {
  Time next = kNever;
  for (size_t i = 0; i < group.used; ++i) {
    const Member& m = group.members[i];
    if (m.usableSince != kNever) next = std::min(next, m.usableSince + m.wait);
  }
  return next;
}

void PeerGroups::update(Group& group, Time now) {
  for (Member& m : group.members) {
    if (!m.peer->isUsable()) {
      m.usableSince = kNever;
    } else if (m.usableSince == kNever) {
      m.usableSince = now;
    }
  }
  const Member& used = group.members[group.used];
  if (used.usableSince != kNever) {
    group.lostAt = group.askedAt = group.decideAt = kNever;
    return comeBack(group, now);
  }
  if (group.lostAt == kNever) group.lostAt = now;
  if (now < group.lostAt) return;
  if (group.askedAt == kNever || (group.decideAt == kNever && now >= group.askedAt + kAskAgain))
    ask(group, now);
  listen(group, now);
}

void PeerGroups::ask(Group& group, Time now) {
  group.askedAt = now;
  for (Member& m : group.members) {
    if (m.usableSince == kNever) continue;
    m.peer->session()->paths().ask();
    peers_.wake(*m.peer);
  }
}

// Asks the peer in use once more, and returns how long to wait for its answer.
Duration PeerGroups::doubt(Peer& used) {
  Session* session = used.session();
  Duration trip = session ? session->paths().answerTime() : Duration::zero();
  if (trip == 0ns) return trip;
  session->paths().ask();
  peers_.wake(used);
  return std::clamp(trip, kLeastDoubt, kMostDoubt);
}

// A datagram that arrived in the same instant as our PING does not count as its answer.
void PeerGroups::listen(Group& group, Time now) {
  if (group.decideAt == kNever) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      const Member& m = group.members[i];
      if (m.usableSince == kNever || m.peer->session()->lastHeard() <= group.askedAt) continue;
      group.answered = i;
      group.decideAt = now + doubt(*group.members[group.used].peer);
      break;
    }
  }
  if (group.decideAt > now) return;
  group.decideAt = kNever;
  if (group.members[group.answered].usableSince == kNever) return ask(group, now);
  use(group, group.answered, true, now);
}

void PeerGroups::comeBack(Group& group, Time now) {
  for (size_t i = 0; i < group.used; ++i) {
    Member& m = group.members[i];
    if (m.usableSince == kNever || now < m.usableSince + m.wait) continue;
    m.tookOverAt = now;
    return use(group, i, false, now);
  }
}

// If the previous peer is lost, the packets that wait for it are sent to the next one, and its
// streams are reset. Otherwise the previous peer keeps its packets and streams.
void PeerGroups::use(Group& group, size_t member, bool lost, Time now) {
  Member& before = group.members[group.used];
  Member& next = group.members[member];
  group.used = member;
  group.lostAt = group.askedAt = kNever;
  before.peer->inUse = false;
  next.peer->inUse = true;
  events_.push({lost ? Event::Kind::kPeerReplaced : Event::Kind::kPeerInUse,
                next.peer->options().name,
                std::string("is in use for group ") + group.name + ": " +
                    (lost ? "peer " + before.peer->options().name + " does not answer"
                          : "it is well again, after peer " + before.peer->options().name)});
  if (!lost) return;
  bool soon = before.tookOverAt != kNever && now - before.tookOverAt < kSoon * before.wait;
  before.wait = soon ? std::min<Duration>(2 * before.wait, kLongestWait * options_.returnAfter)
                     : options_.returnAfter;
  before.tookOverAt = kNever;
  peers_.wake(*before.peer);
  before.peer->abandon(now);
}

}  // namespace braid
