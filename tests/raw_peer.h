#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/frame_table.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/key_ring.h"

namespace braid::test {

/// The encoded frames, one after the other.
template <typename... F>
std::vector<uint8_t> framesOf(const F&... frames) {
  std::vector<uint8_t> out(1200);
  Writer writer(out);
  (writeFrame(writer, frames), ...);
  out.resize(writer.size());
  return out;
}

/// A peer controlled by a test. It has the keys of a session and follows no rules: it seals any
/// frames with any packet numbers.
class RawPeer {
 public:
  RawPeer(const SessionSecrets& secrets, KeySchedule::Role role, Time now)
      : session_(secrets.sessionId), keys_(secrets, role, KeyLimits{}, now) {}

  DatagramHeader header(SubflowId subflow, PacketNumber pn) const {
    return {kWireVersion,
            keys_.epochBits(),
            session_,
            subflow,
            static_cast<uint32_t>(pn.value()),
            keys_.generationBits()};
  }
  /// The datagram with these frames, in a buffer of the pool.
  Packet seal(SubflowId subflow, PacketNumber pn, ByteView frames, PacketPool& pool) {
    Packet packet = pool.allocate();
    uint8_t* bytes = packet.append(kHeaderSize + frames.size() + kTagSize);
    writeHeader(header(subflow, pn), bytes);
    std::array<ByteView, 1> pieces{frames};
    bool sealed = keys_.seal(subflow, pn, {bytes, kHeaderSize}, pieces, bytes + kHeaderSize);
    return sealed ? std::move(packet) : Packet{};
  }

  /// Begins the next epoch of the keys, if it may be begun.
  bool rekey(Time now) { return keys_.rekey(now); }
  /// Begins the key generation of this handshake, whether it was requested or not.
  void renew(const SessionSecrets& fresh, Time now) {
    keys_.prepare(KeyRoot(fresh), now);
    keys_.takeNext(now);
  }
  void onTimer(Time now) { keys_.onTimer(now); }

  /// A datagram of the other side. Frames are views into it.
  struct Opened {
    SubflowId subflow{};
    PacketNumber pn{};
    std::vector<WireFrame> frames;
    bool eliciting = false;
  };
  /// nullopt: not sealed by the other side, or malformed. Decrypts in place.
  std::optional<Opened> open(Datagram& datagram, Time now) {
    std::optional<DatagramHeader> header = readHeader(datagram.bytes.view());
    if (!header) return std::nullopt;
    PacketNumber& expected = expected_[header->subflow.value()];
    Opened opened{header->subflow, expandPacketNumber(header->packetNumber, expected), {}, false};
    ByteSpan sealed = datagram.bytes.span().subspan(kHeaderSize);
    ByteView aad = datagram.bytes.view().first(kHeaderSize);
    if (!keys_.open(header->generation, header->epoch, opened.subflow, opened.pn, aad, sealed, now))
      return std::nullopt;
    expected = std::max(expected, opened.pn + 1);
    FrameReader reader(sealed.first(sealed.size() - kTagSize));
    while (std::optional<WireFrame> frame = reader.next()) {
      opened.eliciting |= traitsOf(*frame).eliciting;
      opened.frames.push_back(*frame);
    }
    return reader.ok() ? std::optional(opened) : std::nullopt;
  }

 private:
  uint32_t session_;
  KeyRing keys_;
  std::map<uint8_t, PacketNumber> expected_;  ///< by subflow
};

}  // namespace braid::test
