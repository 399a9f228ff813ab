#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/dtls/datagram_bio.h"
#include "gateway/dtls/dtls.h"
#include "tests/temporary_folder.h"

namespace braid {

using Bytes = std::vector<uint8_t>;

inline Identity newIdentity(const std::string& name) {
  TemporaryFolder folder;
  generateIdentity(folder.file("key"), folder.file("crt"), name);
  return loadIdentity(folder.file("key"), folder.file("crt"));
}

/// Made once per test program.
inline const Identity& alice() {
  static const Identity identity = newIdentity("alice");
  return identity;
}
inline const Identity& bob() {
  static const Identity identity = newIdentity("bob");
  return identity;
}
inline const Identity& mallory() {
  static const Identity identity = newIdentity("mallory");
  return identity;
}

/// DTLS retransmits by the real clock.
inline Time realNow() {
  return Time(std::chrono::steady_clock::now().time_since_epoch());
}

/// Takes all datagrams that a handshake has ready.
inline std::vector<Bytes> drain(Handshake& handshake, PacketPool& pool) {
  std::vector<Bytes> all;
  for (Packet p = pool.allocate(); handshake.pollDatagram(p); p = pool.allocate())
    all.emplace_back(p.view().begin(), p.view().end());
  return all;
}

/// Alice (initiator) and Bob (responder) joined back to back, and a network that tests may disturb.
class DtlsPair {
 public:
  static DtlsOptions quick() {
    DtlsOptions options;
    options.retransmit = 30ms;
    return options;
  }

  explicit DtlsPair(const DtlsOptions& one = quick(), const DtlsOptions& two = quick(),
                    const Identity& first = alice(), const Identity& second = bob())
      : initiators(first, one), responders(second, two) {
    responders.setAcceptedPins({alice().pin});
  }

  void start(const Pin& peer = bob().pin) { initiator = initiators.initiate(peer, realNow()); }

  /// Returns false for a datagram that the network loses. `index` counts the datagrams of both
  /// directions together.
  std::function<bool(size_t index, bool toResponder)> passes = [](size_t, bool) { return true; };
  bool reversed = false;                     ///< datagrams sent together arrive in reverse order
  bool duplicated = false;                   ///< each datagram arrives twice
  std::vector<std::pair<bool, Bytes>> seen;  ///< all datagrams sent, with their direction
  bool joins = false;      ///< the end of the initiator does not imply that of the responder
  Duration patience = 3s;  ///< longest duration of run()

  /// Exchanges datagrams until both sides have ended, at most for `patience`.
  void run() {
    Time end = realNow() + patience;
    while (realNow() < end) {
      bool moved = carry(*initiator, true);
      if (responder) moved = carry(*responder, false) || moved;
      if (moved) continue;
      if (ended(initiator) && (joins || !responder || ended(responder))) return;
      Time wake = std::min(initiator->deadline(), responder ? responder->deadline() : kNever);
      if (wake == kNever) return;
      std::this_thread::sleep_for(std::min<Duration>(wake - realNow(), 1s));
      initiator->onTimer(realNow());
      if (responder) responder->onTimer(realNow());
    }
  }
  static bool ended(const std::unique_ptr<Handshake>& h) {
    return h->state() != Handshake::State::kRunning;
  }

  bool done() const {
    return initiator->state() == Handshake::State::kDone && responder &&
           responder->state() == Handshake::State::kDone;
  }

  void deliver(bool toResponder, const Bytes& bytes) {
    if (!toResponder) return initiator->onDatagram(bytes, realNow());
    if (!responder) responder = responders.accept(realNow());
    responder->onDatagram(bytes, realNow());
  }

  PacketPool pool{2000, 64};
  DtlsProvider initiators, responders;
  std::unique_ptr<Handshake> initiator, responder;

 private:
  bool carry(Handshake& from, bool toResponder) {
    std::vector<Bytes> ready = drain(from, pool);
    if (reversed) std::reverse(ready.begin(), ready.end());
    for (const Bytes& bytes : ready) send(toResponder, bytes);
    return !ready.empty();
  }
  void send(bool toResponder, const Bytes& bytes) {
    seen.emplace_back(toResponder, bytes);
    if (!passes(seen.size() - 1, toResponder)) return;
    deliver(toResponder, bytes);
    if (duplicated) deliver(toResponder, bytes);
  }
};

}  // namespace braid
