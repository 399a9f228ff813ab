#include "tunnel/initiator.h"

#include <algorithm>
#include <array>

namespace braid {

Initiator::Initiator(HandshakeProvider& provider, SecretRandom& random, const Pin& peer, Time now)
    : random_(random),
      seal_(HandshakeSeal::Side::kInitiator, peer),
      handshake_(provider.initiate(peer, now)) {
  random_.fill(id_);
}

bool Initiator::onDatagram(ByteView bytes, Time now) {
  if (bytes.size() > kMaxHandshakeDatagram) return false;
  std::array<uint8_t, kMaxHandshakeDatagram> copy;
  std::ranges::copy(bytes, copy.begin());
  auto opened = seal_.open(ByteSpan(copy).first(bytes.size()));
  if (!opened || opened->header.id != id_) return false;
  if (opened->header.kind == HandshakeKind::kCookieRequest) {
    onCookie(opened->body);
  } else if (opened->header.kind == HandshakeKind::kResponder) {
    handshake_->onDatagram(opened->body, now);
  }
  return true;
}

// A request that comes again with the same cookie is no news: who has overheard it would have us send for him. When the
// hello got lost, its own timer repeats it.
void Initiator::onCookie(ByteView cookie) {
  if (cookie.size() != cookie_.size() || hello_.empty() || std::ranges::equal(cookie, cookie_)) return;
  std::ranges::copy(cookie, cookie_.begin());
  again_ = true;
}

bool Initiator::pollDatagram(Packet& out) {
  if (again_) {
    again_ = false;
    if (hello_.size() > out.tailroom()) return false;
    std::ranges::copy(hello_, out.append(hello_.size()));
  } else if (handshake_->pollDatagram(out)) {
    if (isClientHello(out.view())) hello_.assign(out.view().begin(), out.view().end());
  } else {
    return false;
  }
  HandshakeHeader header{HandshakeKind::kInitiator, id_, {}, cookie_};
  random_.fill(header.nonce);
  return seal_.seal(header, out);
}

}  // namespace braid
