#pragma once

#include <algorithm>
#include <array>

#include "tunnel/session/session.h"

namespace braid {

/// PADDING frames, enough for the largest probe.
inline constexpr std::array<uint8_t, 9216> kZeros{};

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
  bool ect = false;  ///< leaves as ECT(0) although nothing asks for an ACK
  bool hasControl = false;
  SentPacket::Role role = SentPacket::Role::kOrdinary;
  ByteView parity;     ///< follows the frames in `small`
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
  void addCopy(Datum* datum) {
    addDatum(datum);
    role = SentPacket::Role::kCopy;
  }
  /// `bytes` of a parity, whose header is written already.
  void addParity(ByteView bytes) {
    parity = bytes;
    used += bytes.size();
    tracked = true;
    role = SentPacket::Role::kParity;
  }
  void padTo(size_t datagram) {
    size_t want = datagram - kHeaderSize - kTagSize;
    if (used >= want) return;
    padding = std::min(want - used, kZeros.size());
    used += padding;
  }
};

}  // namespace braid
