#pragma once

// One datagram, from its buffer to the sealed bytes: its packet number, its limits, its frames, and the entry in
// the sent-map of its subflow.
//
//     DatagramBuilder build(subflow, std::move(buffer));   takes the next packet number
//     if (build.fits(size)) build.addDatum(datum);         frames, as far as they fit
//     build.finish(sealer, out, now);                      seals; the number is used up
//
// A builder that is thrown away without finish() has used no number. There is one at a time for a subflow.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/packet.h"
#include "coding/block.h"
#include "tunnel/subflow/datagram.h"
#include "tunnel/subflow/sent_packets.h"
#include "tunnel/subflow/subflow.h"
#include "tunnel/wire/frame_traits.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/key_ring.h"

namespace braid {

/// Bytes of frames that a datagram of this size (bytes of UDP payload) holds.
constexpr size_t frameRoom(size_t datagram) {
  return datagram - kHeaderSize - kTagSize;
}
/// Whether the DATA frame of an inner packet of so many bytes fits behind `used` bytes of frames, with room for
/// `room` bytes in all.
constexpr bool dataFits(size_t packet, size_t used, size_t room) {
  return used + kFrame<DataFrame>.largest + packet <= room;
}
/// Whether an inner packet of so many bytes fits a datagram of its own on the subflow's path.
inline bool fits(size_t packet, const Subflow& subflow) {
  return dataFits(packet, 0, frameRoom(subflow.mtu().current()));
}
/// Whether it does or may turn out to, because the path's MTU is still searched for.
inline bool mayFit(size_t packet, const Subflow& subflow) {
  return subflow.mtu().searching() || fits(packet, subflow);
}

/// Seals the datagrams of one session, and changes keys when it is time.
class DatagramSealer {
 public:
  /// `keys` must outlive it. `later`: the work is handed over with each datagram, and not done.
  DatagramSealer(uint32_t session, KeyRing& keys, bool later = false)
      : session_(session), keys_(keys), later_(later) {}

  uint32_t session() const { return session_; }

  /// Writes header, sealed pieces and tag to `out`; or header, pieces and room for the tag, and what is left to do to
  /// `work`. False when the keys are used up: then nothing more can leave.
  bool seal(SubflowId subflow, PacketNumber packetNumber, std::span<const ByteView> pieces, uint8_t* out,
            CipherWork& work, Time now);
  /// seal() has failed.
  bool failed() const { return failed_; }

 private:
  bool sealLater(SubflowId subflow, PacketNumber packetNumber, std::span<const ByteView> pieces, uint8_t* out,
                 CipherWork& work);

  uint32_t session_;
  KeyRing& keys_;
  bool later_;
  bool failed_ = false;
};

/// Frames other than DATA and all DATA headers are written to a small array; payloads stay where they are until
/// the AEAD reads them, so that sealing is the only copy.
class DatagramBuilder {
 public:
  /// To the subflow's own route, as large as its path carries. `buffer` must not be empty.
  DatagramBuilder(Subflow& subflow, Packet buffer);
  /// To that route, `datagram` bytes at most: path frames and MTU probes.
  DatagramBuilder(Subflow& subflow, Packet buffer, const Route& route, size_t datagram);
  DatagramBuilder(const DatagramBuilder&) = delete;
  DatagramBuilder& operator=(const DatagramBuilder&) = delete;

  Subflow& subflow() const { return subflow_; }
  PacketNumber packetNumber() const { return packetNumber_; }
  /// Bytes of frames so far, payloads included.
  size_t used() const { return used_; }
  /// The inner packets in it.
  std::span<const Datum* const> data() const { return {data_.data(), dataCount_}; }

  /// Whether another inner packet of so many bytes does.
  bool fits(size_t packet) const {
    return dataCount_ < kMaxDataPerDatagram && dataFits(packet, used_, limit_);
  }
  bool isFull() const { return dataCount_ == kMaxDataPerDatagram; }
  /// Whether a frame of so many bytes does, beside which an ACK and DATA headers still find room.
  bool fitsControl(size_t frame) const { return used_ + frame <= std::min(limit_, kMaxControlBytes); }

  /// A frame that nobody acknowledges.
  template <typename Frame>
  void add(const Frame& frame) {
    size_t before = writer_.size();
    writeFrame(writer_, frame);
    used_ += writer_.size() - before;
  }
  /// A frame that asks for an ACK.
  template <typename Frame>
  void addTracked(const Frame& frame) {
    add(frame);
    tracked_ = true;
  }
  /// A control frame: its sender hears of the packet's fate.
  template <typename Frame>
  void addControl(const Frame& frame) {
    addTracked(frame);
    hasControl_ = true;
  }
  /// What arrived on this datagram's subflow, as far as it fits; nothing when nothing is to be acknowledged.
  void addAck(Time now) { addAck(subflow_, now); }
  /// What arrived on another one that can not say it itself.
  void addAck(Subflow& of, Time now);
  void addDatum(const Datum* datum);
  /// A second sending of what went in another datagram.
  void addCopy(const Datum* datum);
  /// Keeps so many bytes free: other frames do not use them.
  void reserve(size_t bytes) { limit_ -= bytes; }
  /// The first bytes of a parity; `part` must stay until finish(), and be the last frame.
  void addParity(const BlockDescription& block, size_t index, ByteView part);
  /// The rest of one; as above.
  void addParityTail(const ParityTailFrame& tail);
  /// Fills it up to so many bytes.
  void padTo(size_t datagram);
  /// It is a probe of that size for the path's MTU.
  void makeMtuProbe(size_t datagram);
  /// It leaves as ECT(0) although nothing in it asks for an ACK.
  void markEct() { ect_ = true; }

  /// Seals it and enters it in the subflow's sent-map; `out` is then ready to leave. False when the keys are
  /// used up (DatagramSealer::failed()).
  bool finish(DatagramSealer& sealer, Datagram& out, Time now);

 private:
  /// Control frames in a datagram: leaves room in `small_` for an ACK and the DATA headers.
  static constexpr size_t kMaxControlBytes = 512;

  void addPayload(ByteView parity);

  Subflow& subflow_;
  PacketNumber packetNumber_;
  Route route_;
  Packet buffer_;
  std::array<uint8_t, 1200> small_;
  Writer writer_;
  size_t limit_;  ///< frame bytes that fit
  size_t used_ = 0;
  bool tracked_ = false;  ///< something asks for an ACK
  bool hasControl_ = false;
  bool mtuProbe_ = false;
  bool ect_ = false;
  SentPacket::Role role_ = SentPacket::Role::kOrdinary;
  ByteView parity_;     ///< follows the frames in `small_`
  size_t padding_ = 0;  ///< PADDING bytes at the end
  size_t dataCount_ = 0;
  std::array<const Datum*, kMaxDataPerDatagram> data_;
  std::array<size_t, kMaxDataPerDatagram> headerAt_;  ///< where in `small_` each DATA header begins
};

}  // namespace braid
