#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/options.h"
#include "tunnel/stream/registry.h"
#include "tunnel/stream/stream.h"

namespace braid {

/// The send side of all streams of a session. Takes what the driver writes, as far as credit and
/// paths let it be sent soon, and gives units of it to the DRR scheduler. Lists the streams that
/// have to be looked at, because everything that they sent has arrived.
class StreamSendSide final : public Lane {
 public:
  /// All but `session` must outlive it. `registry` is nullptr when there are no streams.
  StreamSendSide(const StreamOptions& options, PacketPool& pool, DrrScheduler& drr,
                 StreamRegistry* registry, uint32_t session);

  /// `unit`: most bytes of a unit. `rate`: bytes per second that the paths carry together;
  /// infinity: not known.
  void setPaths(size_t unit, double rate);
  /// Lets streams that wait for a buffer try again. Call at nextDeadline().
  void feed(Time now);
  Time nextDeadline() const { return hungry_.empty() ? kNever : retryAt_; }
  uint64_t sentBytes() const { return sentBytes_; }

  /// Queues the opening of a new stream. False when no buffer is free.
  bool begin(Stream& stream, Time now);
  size_t writable(Stream& stream, size_t wanted);
  size_t room(Stream& stream, std::span<ByteSpan> buffers);
  void commit(Stream& stream, size_t bytes, Time now);
  size_t write(Stream& stream, ByteView bytes, Time now);
  void finish(Stream& stream, Time now);
  /// The peer's credit has grown, or a unit was sent: tells a driver that waits when it may write
  /// again.
  void tellWritable(Stream& stream);

  /// Adds the stream to the list of those that may be done.
  void checkLater(Stream& stream);
  /// Takes the next stream that may be done; nullptr when there is none.
  Stream* takeToCheck();
  /// The stream ends; everything that it has sent was given up before.
  void forget(Stream& stream);

  // Lane
  const Packet* prepare(Flow& flow, Time now) override;
  Packet handOut(Flow& flow) override;
  bool cut(Flow& flow, size_t size) override;
  void onAllDone(Flow& flow) override;

 private:
  SendBuffer::Make makeFor(const Stream& stream) const;
  size_t mayWrite(const Stream& stream) const;
  void onWritten(Stream& stream, size_t grown, size_t packets, size_t bytes, Time now);
  void onCut(Stream& stream, size_t packetsBefore, size_t grown);
  void starve(Stream& stream);

  const StreamOptions& options_;
  PacketPool& pool_;
  DrrScheduler& drr_;
  StreamRegistry* const registry_;
  const uint32_t session_;
  CallbackQuotaUser queued_;  ///< buffers that wait to be sent
  size_t queuedPackets_ = 0;
  size_t unit_;   ///< most bytes of a unit
  size_t ahead_;  ///< most bytes of a stream that wait
  uint64_t sentBytes_ = 0;
  Time retryAt_{};  ///< buffers are not asked for again before this time
  IntrusiveList<Stream, &Stream::byCheck_> toCheck_;
  IntrusiveList<Stream, &Stream::byHunger_> hungry_;
};

}  // namespace braid
