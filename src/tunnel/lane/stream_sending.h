#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/lane.h"
#include "tunnel/lane/stream.h"
#include "tunnel/lane/stream_desk.h"
#include "tunnel/lane/stream_holdings.h"
#include "tunnel/lane/stream_options.h"

namespace braid {

/// The sending half of the streams of a session: takes what the driver writes, as far as credit and paths let it soon
/// leave, and gives the round units of it. It says which streams are to be looked at, for all that they sent has arrived.
class StreamSending final : public Lane {
 public:
  /// All but the number must outlive it; `desk`: nullptr when there are no streams.
  StreamSending(const StreamOptions& options, PacketPool& pool, FairRound& round, StreamDesk* desk,
                uint32_t session);

  /// How large a unit may be, and what the paths carry together (bytes per second; infinity: not known).
  void setPaths(size_t unit, double rate);
  /// Streams that wait for a buffer get their turn. At nextDeadline().
  void feed(Time now);
  Time nextDeadline() const { return hungry_.empty() ? kNever : retryAt_; }
  uint64_t sentBytes() const { return sentBytes_; }

  /// Says the opening of a new stream. False: there is no buffer.
  bool begin(Stream& stream, Time now);
  size_t writable(Stream& stream, size_t wanted);
  size_t room(Stream& stream, std::span<ByteSpan> buffers);
  void commit(Stream& stream, size_t bytes, Time now);
  size_t write(Stream& stream, ByteView bytes, Time now);
  void finish(Stream& stream, Time now);
  /// The peer's credit has grown, or something has left: a driver that waits may write.
  void tellWritable(Stream& stream);

  /// To be looked at by the lane.
  void look(Stream& stream);
  /// The next one that is; nullptr: none.
  Stream* takeLooked();
  /// The stream ends; all that it has sent was given up before.
  void forget(Stream& stream);

  // Lane
  const Packet* prepare(Flow& flow, Time now) override;
  Packet handOut(Flow& flow) override;
  bool cut(Flow& flow, size_t size) override;
  void onSettled(Flow& flow) override;

 private:
  StreamSource::Make makeFor(const Stream& stream) const;
  size_t mayWrite(const Stream& stream) const;
  void onWritten(Stream& stream, size_t grown, size_t packets, size_t bytes, Time now);
  void onCut(Stream& stream, size_t packetsBefore, size_t grown);
  void starve(Stream& stream);

  const StreamOptions& options_;
  PacketPool& pool_;
  FairRound& round_;
  StreamDesk* const desk_;
  const uint32_t session_;
  FirmKeeper queued_;  ///< buffers that wait to be sent
  size_t queuedPackets_ = 0;
  size_t unit_;   ///< bytes of one
  size_t ahead_;  ///< bytes of a stream that may wait
  uint64_t sentBytes_ = 0;
  Time retryAt_{};  ///< not before are buffers asked for again
  IntrusiveList<Stream, &Stream::byLook_> looked_;
  IntrusiveList<Stream, &Stream::byHunger_> hungry_;
};

}  // namespace braid
