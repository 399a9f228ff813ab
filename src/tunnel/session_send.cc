#include "tunnel/session.h"

#include <algorithm>

namespace braid {

namespace {
/// PADDING frames, enough for the largest probe.
constexpr std::array<uint8_t, 9216> kZeros{};
}  // namespace

// One datagram under construction. Frames other than DATA and all DATA headers are written to `small`;
// payloads stay where they are until the AEAD reads them, so that sealing is the only copy.
struct Session::Build {
  /// Control frames in a datagram: leaves room in `small` for an ACK and the DATA headers.
  static constexpr size_t kMaxControlBytes = 512;
  Subflow& subflow;
  Route route;
  Packet out;
  std::array<uint8_t, 1200> small;
  Writer writer;
  size_t limit;          ///< frame bytes that fit
  size_t used = 0;       ///< frame bytes so far, payloads included
  bool tracked = false;  ///< something asks for an ACK
  bool mtuProbe = false;
  bool hasControl = false;
  size_t padding = 0;  ///< PADDING bytes at the end
  size_t dataCount = 0;
  std::array<Datum*, kMaxDataPerDatagram> data;
  std::array<size_t, kMaxDataPerDatagram> headerAt;  ///< where in `small` each DATA header begins

  Build(Subflow& s, const Route& r, Packet buffer, size_t datagram)
      : subflow(s),
        route(r),
        out(std::move(buffer)),
        writer(small),
        limit(datagram - kHeaderSize - kTagSize) {}

  template <typename F>
  void add(const F& frame) {
    size_t before = writer.size();
    writeFrame(writer, frame);
    used += writer.size() - before;
  }
  bool fits(size_t payload) const {
    return dataCount < kMaxDataPerDatagram && used + kDataFrameHeader + payload <= limit;
  }
  /// What arrived on this datagram's subflow, or on another one that can not say it itself.
  void addAck(Time now) { addAck(subflow, now); }
  void addAck(Subflow& of, Time now) {
    AckSender& acks = of.acks();
    if (!acks.pending()) return;
    std::array<uint8_t, 512> space;
    Writer ack(ByteSpan(space).first(std::min(space.size(), limit - used)));
    if (!writeFrame(ack, acks.frame(of.id(), now))) return;
    writer.bytes({space.data(), ack.size()});
    used += ack.size();
    acks.onSent();
  }
  void addDatum(Datum* datum) {
    headerAt[dataCount] = writer.size();
    std::array<uint8_t, kDataFrameHeader> header;
    writeDataHeader(datum->slot, datum->dsn, datum->packet.size(), header.data());
    writer.bytes(header);
    data[dataCount++] = datum;
    used += kDataFrameHeader + datum->packet.size();
    tracked = true;
  }
  void padTo(size_t datagram) {
    size_t want = datagram - kHeaderSize - kTagSize;
    if (used >= want) return;
    padding = std::min(want - used, kZeros.size());
    used += padding;
  }
};

bool Session::pollDatagram(Datagram& out, Time now) {
  if (closing_) return pollClose(out, now);
  if (over_) return false;
  return pollUrgent(out, now) || pollControl(out, now) || pollRepair(out, now) || pollNewData(out, now) ||
         pollMtuProbe(out, now);
}

// Path frames, probes and ACKs that are due: they do not wait for window or pacer.
bool Session::pollUrgent(Datagram& out, Time now) {
  for (size_t i = 0; i < subflows_.size(); ++i) {
    Subflow& s = *subflows_[(turn_ + i) % subflows_.size()];
    bool own = s.mustSend();
    Subflow* carrier = own || s.usable() ? &s : ackCarrier(s);
    bool speaks = carrier && carrier->canNumber() && (own || s.acks().due(now));
    if (!speaks && !s.hasPathFrame(now)) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    turn_ = (turn_ + i + 1) % subflows_.size();
    if (std::optional<Subflow::PathFrame> path = s.takePathFrame(now)) {
      Build build(s, path->route, std::move(buffer), MtuDiscovery::kMinDatagram);
      if (path->response) build.add(*path->response);
      if (path->challenge) build.add(*path->challenge);
      if (path->size) build.padTo(path->size);
      return finish(build, out, now);
    }
    Build build(*carrier, carrier->route(), std::move(buffer), carrier->mtu());
    if (own) {
      build.add(PingFrame{});
      build.tracked = true;
    }
    build.addAck(s, now);
    if (carrier->isOpen(now) || (own && !anyUsable())) addData(build, now);
    return finish(build, out, now);
  }
  return false;
}

// What arrived on a path that is silent or gone is acknowledged over another one, so that it is not sent
// again.
Subflow* Session::ackCarrier(Subflow& of) {
  if (Subflow* best = fastest()) return best;
  return of.state() == Subflow::State::kClosed ? nullptr : &of;
}

bool Session::pollControl(Datagram& out, Time now) {
  while (ledger_.hasSkips() && controls_.size() < kMaxControls) controls_.push_back({*ledger_.takeSkip()});
  if (std::all_of(controls_.begin(), controls_.end(), [](const Control& c) { return c.inFlight; }))
    return false;
  Subflow* s = fastest();
  if (!s || !s->canNumber()) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  Build build(*s, s->route(), std::move(buffer), s->mtu());
  addControl(build);
  build.addAck(now);
  if (s->isOpen(now)) addData(build, now);
  return finish(build, out, now);
}

bool Session::pollRepair(Datagram& out, Time now) {
  while (Datum* datum = ledger_.nextRepair(now)) {
    Subflow* s = pathForRepair(*datum, now);
    if (!s) {
      bool fitsSomewhere = false;
      for (Subflow* other : subflows_) {
        bool fits = other->searchesMtu() || datum->packet.size() + kDatagramOverhead <= other->mtu();
        fitsSomewhere |= fits || !other->usable();
      }
      if (fitsSomewhere) return false;
      owner_.onTooLarge(datum->packet.view());
      ledger_.giveUp(datum, Drop::kTooBig);
      continue;
    }
    return sendData(*s, out, now);
  }
  return false;
}

bool Session::sendData(Subflow& s, Datagram& out, Time now) {
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  Build build(s, s.route(), std::move(buffer), s.mtu());
  build.addAck(now);
  addData(build, now);
  return finish(build, out, now);
}

// Not on the path that just fell silent with it, while another is usable.
bool Session::mayRepair(const Datum& datum, const Subflow& subflow) const {
  if (!datum.moved || datum.subflow != subflow.id()) return true;
  for (const Subflow* s : subflows_) {
    if (s->usable() && s != &subflow) return false;
  }
  return true;
}

// The fastest path that may send it now and that the packet fits.
Subflow* Session::pathForRepair(const Datum& datum, Time now) {
  Subflow* best = nullptr;
  for (Subflow* s : subflows_) {
    if (!s->isOpenForRepair(now) || datum.packet.size() + kDatagramOverhead > s->mtu()) continue;
    if (!mayRepair(datum, *s)) continue;
    if (!best || s->rtt().smoothed() < best->rtt().smoothed()) best = s;
  }
  return best;
}

Subflow* Session::fastest() {
  Subflow* best = nullptr;
  for (Subflow* s : subflows_) {
    if (!s->usable()) continue;
    if (!best || s->rtt().smoothed() < best->rtt().smoothed()) best = s;
  }
  return best;
}

bool Session::pollNewData(Datagram& out, Time now) {
  while (const Packet* head = flows_.peek(now)) {
    size_t need = head->size() + kDatagramOverhead;
    bool fitsSomewhere = false;
    bool anyOpen = false;
    for (size_t i = 0; i < subflows_.size(); ++i) {
      views_[i] = subflows_[i]->view(now);
      bool fits = need <= subflows_[i]->mtu();
      fitsSomewhere |= views_[i].usable && (fits || subflows_[i]->searchesMtu());
      if (!fits) views_[i].open = views_[i].usable = false;
      anyOpen |= views_[i].open;
    }
    if (!fitsSomewhere && anyUsable()) {
      owner_.onTooLarge(head->view());
      Flow* flow = nullptr;
      flows_.pop(now, flow);
      owner_.onDrop(Drop::kTooBig, 1);
      continue;
    }
    if (!anyOpen) return false;
    std::optional<size_t> choice = scheduler_->pick(views_, need, flows_.bytes());
    if (!choice) return false;
    return sendData(*subflows_[*choice], out, now);
  }
  for (Subflow* s : subflows_) {
    if (s->isOpen(now)) s->setAppLimited();
  }
  return false;
}

bool Session::pollMtuProbe(Datagram& out, Time now) {
  for (Subflow* s : subflows_) {
    size_t size = s->mtuProbe();
    if (size == 0 || !s->canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    Build build(*s, s->route(), std::move(buffer), size);
    build.add(PingFrame{});
    build.tracked = build.mtuProbe = true;
    build.padTo(size);
    s->onMtuProbeSent(size, now);
    return finish(build, out, now);
  }
  return false;
}

bool Session::pollClose(Datagram& out, Time now) {
  while (closesLeft_ > 0) {
    Subflow& s = *subflows_[--closesLeft_];
    if (!s.usable() || !s.canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    Build build(s, s.route(), std::move(buffer), s.mtu());
    build.add(CloseFrame{});
    return finish(build, out, now);
  }
  return false;
}

void Session::addControl(Build& build) {
  for (Control& control : controls_) {
    if (control.inFlight || build.used + 24 > std::min(build.limit, Build::kMaxControlBytes)) continue;
    std::visit([&](const auto& frame) { build.add(frame); }, control.frame);
    control.inFlight = true;
    control.subflow = build.subflow.id();
    control.pn = build.subflow.nextPacketNumber();
    build.hasControl = build.tracked = true;
  }
}

// Known losses go before new data (architecture, decision 4).
void Session::addData(Build& build, Time now) {
  while (build.dataCount < kMaxDataPerDatagram) {
    Datum* repair = ledger_.nextRepair(now);
    if (repair && build.fits(repair->packet.size()) && mayRepair(*repair, build.subflow)) {
      build.addDatum(repair);
      ledger_.onSent(repair, build.subflow.id());
      build.subflow.countRepair(repair->packet.size());
      ++counts_.repaired;
      continue;
    }
    const Packet* head = flows_.peek(now);
    if (!head || !build.fits(head->size())) return;
    Flow* flow = nullptr;
    Packet packet = flows_.pop(now, flow);
    Datum* datum = ledger_.create(*flow, flow->slot, flow->nextDsn++, flow->reliable, std::move(packet), now);
    build.addDatum(datum);
    ledger_.onSent(datum, build.subflow.id());
    ++counts_.sentPackets;
    counts_.sentBytes += datum->packet.size();
  }
}

bool Session::finish(Build& build, Datagram& out, Time now) {
  // Pieces in wire order: small frames up to the first DATA header, that header and payload, and so on.
  std::array<ByteView, 2 * kMaxDataPerDatagram + 2> pieces;
  size_t count = 0;
  size_t from = 0;
  for (size_t i = 0; i < build.dataCount; ++i) {
    size_t end = build.headerAt[i] + kDataFrameHeader;
    pieces[count++] = ByteView(build.small).subspan(from, end - from);
    pieces[count++] = build.data[i]->packet.view();
    from = end;
  }
  if (build.writer.size() > from)
    pieces[count++] = ByteView(build.small).subspan(from, build.writer.size() - from);
  if (build.padding > 0) pieces[count++] = ByteView(kZeros).first(build.padding);

  Subflow& s = build.subflow;
  uint64_t pn = s.nextPacketNumber();
  if (keys_.wantsRekey(now) && keys_.rekey(now)) event({Event::Kind::kRekeyed, {}, "new keys"});
  size_t size = kHeaderSize + build.used + kTagSize;
  uint8_t* bytes = build.out.append(size);
  writeHeader({kWireVersion, keys_.epochBits(), id_, s.id(), static_cast<uint32_t>(pn)}, bytes);
  bool sealed = keys_.seal(s.id(), pn, {bytes, kHeaderSize}, {pieces.data(), count}, bytes + kHeaderSize);
  SentPacket& sent = s.onSent(size, build.tracked, now);
  sent.mtuProbe = build.mtuProbe;
  sent.hasControl = build.hasControl;
  sent.dataCount = static_cast<uint8_t>(build.dataCount);
  for (size_t i = 0; i < build.dataCount; ++i) sent.data[i] = build.data[i];
  if (build.dataCount > 0 && !s.usable()) s.moveData(sent, now);
  if (!sealed) {
    over_ = true;  // the cipher's limit: a new session takes over
    return false;
  }
  out.route = build.route;
  out.ecn = build.tracked ? Ecn::kEct0 : Ecn::kNotEct;
  out.mtuProbe = build.mtuProbe;
  out.bytes = std::move(build.out);
  return true;
}

}  // namespace braid
