#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/time.h"
#include "host/stream_host.h"
#include "tunnel/stream_lanes.h"

namespace braid {

/// The joint between one TCP connection of this gateway and its stream: carries bytes both ways as far as both take them,
/// and tells each side how the other one ends. What one end does not take stays where it is counted: in the kernel's
/// buffers, or with the stream.
class StreamPump {
 public:
  /// Bytes of each direction in one go; then others have their turn. Ours.
  static constexpr size_t kTurn = 256 << 10;

  /// `taken`: the hosts of a connection that was taken over; none: it is being opened. `lanes` must outlive this.
  StreamPump(StreamLanes& lanes, StreamHandle stream, std::unique_ptr<StreamSocket> socket,
             const std::optional<StreamPair>& taken)
      : lanes_(lanes),
        stream_(stream),
        socket_(std::move(socket)),
        taken_(taken),
        connecting_(!taken),
        canWrite_(taken.has_value()) {}

  StreamHandle stream() const { return stream_; }
  const std::optional<StreamPair>& taken() const { return taken_; }
  bool connecting() const { return connecting_; }

  /// What the host told of the connection.
  void note(StreamObserver::Ready ready);
  /// What happens next: nothing until one of both sides says more, or more at once; or the connection has failed so,
  /// and the stream is reset.
  enum class Next : uint8_t { kWait, kMore, kFailed };
  /// Carries what can be carried.
  Next move(Time now);
  /// Why move() gave kFailed.
  StreamCause cause() const { return cause_; }
  /// Both ways are at their ends: the connection ends in order. Without this call it ends with a reset.
  void close() {
    if (!std::exchange(shut_, true)) socket_->shutdownWrite();
    socket_->close();
  }

  /// Whether it waits in a list of those that have something to do; kept by the owner of the list.
  bool listed = false;

 private:
  bool fail(int error, Time now);
  bool connect(Time now);
  bool upward(Time now);    ///< from the connection into the stream
  bool downward(Time now);  ///< from the stream into the connection

  StreamLanes& lanes_;
  StreamHandle stream_;
  std::unique_ptr<StreamSocket> socket_;
  std::optional<StreamPair> taken_;
  bool connecting_;
  bool canRead_ = false, canWrite_;
  bool failed_ = false;
  bool finished_ = false;  ///< the connection's last byte is in the stream
  bool shut_ = false;      ///< the stream's last byte is in the connection
  bool more_ = false;
  StreamCause cause_ = StreamCause::kReset;
};

/// What an errno of a connection means to the other end.
StreamCause causeOf(int error);

}  // namespace braid
