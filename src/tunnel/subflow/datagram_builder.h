#pragma once

// Builds one datagram, from its buffer to the sealed bytes: its packet number, its size limits, its
// frames, and its entry in the subflow's sent-map.
//
//     DatagramBuilder build(subflow, std::move(buffer));   takes the next packet number
//     if (build.fits(size)) build.addUnit(unit);         frames, as far as they fit
//     build.finish(sealer, out, now);                      seals; the number is used up
//
// A builder that is destroyed without finish() has used no packet number. A subflow has at most one
// builder at a time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/packet.h"
#include "coding/symbols.h"
#include "tunnel/subflow/route.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/subflow/subflow.h"
#include "tunnel/wire/frame_table.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/key_ring.h"

namespace braid {

/// Bytes of frames that fit into a datagram of `datagram` bytes (UDP payload).
constexpr size_t frameRoom(size_t datagram) {
  return datagram - kHeaderSize - kTagSize;
}
/// Whether the DATA frame of an inner packet of `packet` bytes fits behind `used` bytes of frames,
/// when there is room for `room` bytes of frames in all.
constexpr bool dataFits(size_t packet, size_t used, size_t room) {
  return used + kFrame<DataFrame>.largest + packet <= room;
}
/// Whether an inner packet of `packet` bytes fits into a datagram of its own on the subflow's path.
inline bool fits(size_t packet, const Subflow& subflow) {
  return dataFits(packet, 0, frameRoom(subflow.mtu().current()));
}
/// Whether an inner packet of `packet` bytes fits, or may turn out to fit because the search for
/// the path's MTU is not finished.
inline bool mayFit(size_t packet, const Subflow& subflow) {
  return subflow.mtu().searching() || fits(packet, subflow);
}

/// Seals the datagrams of one session, and starts a new key epoch when it is time.
class DatagramSealer {
 public:
  /// `keys` must outlive this object.
  DatagramSealer(uint32_t session, KeyRing& keys) : session_(session), keys_(keys) {}

  uint32_t session() const { return session_; }

  /// Writes header, sealed pieces and tag to `out`. Returns false when the keys are used up: then
  /// nothing more can be sent.
  bool seal(SubflowId subflow, PacketNumber packetNumber, std::span<const ByteView> pieces,
            uint8_t* out, Time now);
  /// Whether seal() has ever failed.
  bool failed() const { return failed_; }

 private:
  uint32_t session_;
  KeyRing& keys_;
  bool failed_ = false;
};

/// Frames other than DATA, and all DATA headers, are written to a small array. Payloads stay where
/// they are until the AEAD reads them, so sealing is the only copy.
class DatagramBuilder {
 public:
  /// For the subflow's own route, as large as its path carries. `buffer` must own a block.
  DatagramBuilder(Subflow& subflow, Packet buffer);
  /// For `route`, at most `datagram` bytes: for path frames and MTU probes.
  DatagramBuilder(Subflow& subflow, Packet buffer, const Route& route, size_t datagram);
  DatagramBuilder(const DatagramBuilder&) = delete;
  DatagramBuilder& operator=(const DatagramBuilder&) = delete;

  Subflow& subflow() const { return subflow_; }
  PacketNumber packetNumber() const { return packetNumber_; }
  /// Bytes of the frames already added, payloads included.
  size_t used() const { return used_; }
  /// The inner packets already added.
  std::span<const UnitRef> data() const { return {data_.data(), dataCount_}; }

  /// Whether the DATA frame of another inner packet of `packet` bytes fits.
  bool fits(size_t packet) const {
    return dataCount_ < kMaxDataPerDatagram && dataFits(packet, used_, limit_);
  }
  bool isFull() const { return dataCount_ == kMaxDataPerDatagram; }
  /// Whether a control frame of `frame` bytes fits and leaves room for an ACK and DATA headers.
  bool fitsControl(size_t frame) const {
    return used_ + frame <= std::min(limit_, kMaxControlBytes);
  }

  /// Adds a frame that is not ack-eliciting.
  template <typename Frame>
  void add(const Frame& frame) {
    size_t before = writer_.size();
    writeFrame(writer_, frame);
    used_ += writer_.size() - before;
  }
  /// Adds an ack-eliciting frame.
  template <typename Frame>
  void addTracked(const Frame& frame) {
    add(frame);
    tracked_ = true;
  }
  /// Adds a control frame. SubflowEvents will tell whether the packet was delivered or lost.
  template <typename Frame>
  void addControl(const Frame& frame) {
    addTracked(frame);
    hasControl_ = true;
  }
  /// Adds the ACK of this datagram's subflow, with as many ranges as fit. Adds nothing when there
  /// is nothing to acknowledge.
  void addAck(Time now) { addAck(subflow_, now); }
  /// Adds the ACK of another subflow that cannot send it itself.
  void addAck(Subflow& of, Time now);
  void addUnit(UnitRef unit);
  /// Adds a duplicate of data that another datagram carries.
  void addCopy(UnitRef unit);
  /// Keeps `bytes` bytes free: fits() and addAck() no longer use them.
  void reserve(size_t bytes) { limit_ -= bytes; }
  /// Adds the first bytes of a parity. `part` must stay valid until finish(), and this must be the
  /// last frame.
  void addParity(const BlockDescription& block, size_t index, ByteView part);
  /// Adds the rest of a parity, under the same conditions.
  void addParityTail(const ParityTailFrame& tail);
  /// Adds PADDING until the datagram has `datagram` bytes.
  void padTo(size_t datagram);
  /// Makes this a probe of `datagram` bytes for the path's MTU.
  void makeMtuProbe(size_t datagram);
  /// Makes the datagram leave as ECT(0) although nothing in it is ack-eliciting.
  void markEct() { ect_ = true; }

  /// Seals the datagram and enters it in the subflow's sent-map; `out` is then ready to be sent.
  /// Returns false when the keys are used up (DatagramSealer::failed()).
  bool finish(DatagramSealer& sealer, Datagram& out, Time now);

 private:
  /// Most bytes of control frames in a datagram, so that `small_` has room for an ACK and the DATA
  /// headers.
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
  bool tracked_ = false;  ///< a frame is ack-eliciting
  bool hasControl_ = false;
  bool mtuProbe_ = false;
  bool ect_ = false;
  SentPacket::Role role_ = SentPacket::Role::kOrdinary;
  ByteView parity_;     ///< follows the frames in `small_`
  size_t padding_ = 0;  ///< PADDING bytes at the end
  size_t dataCount_ = 0;
  std::array<UnitRef, kMaxDataPerDatagram> data_;
  std::array<size_t, kMaxDataPerDatagram> headerAt_;  ///< where in `small_` each DATA header begins
};

}  // namespace braid
