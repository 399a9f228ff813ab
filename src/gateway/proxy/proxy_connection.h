#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "host/stream_host.h"
#include "inet/addresses.h"
#include "tunnel/api/streams.h"

namespace braid {

/// Connects one TCP connection of this gateway with its stream. It carries bytes both ways as far
/// as both sides accept them, and tells each side how the other one ended. Bytes that one side does
/// not accept stay in buffers that are accounted for: the kernel's, or the stream's.
class ProxyConnection {
 public:
  /// Most bytes carried in each direction per call of move(); then other connections have their
  /// turn.
  static constexpr size_t kTurn = 256 << 10;

  /// `taken`: the two hosts of a connection that was taken over; nullopt: the connection is being
  /// opened. `lanes` must outlive this.
  ProxyConnection(StreamApi& lanes, StreamHandle stream, std::unique_ptr<StreamSocket> socket,
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

  /// Notes what the host reported about the connection.
  void note(StreamObserver::Ready ready);
  /// What move() left: nothing to do until one of the sides reports something (kWait); more to
  /// carry at once (kMore); or the connection failed, and the stream was reset (kFailed).
  enum class Next : uint8_t { kWait, kMore, kFailed };
  /// Carries what can be carried now.
  Next move(Time now);
  /// Why move() gave kFailed.
  StreamCause cause() const { return cause_; }
  /// Closes the connection in order, after both directions have ended. Without this call it ends
  /// with a reset.
  void close() {
    if (!std::exchange(shut_, true)) socket_->shutdownWrite();
    socket_->close();
  }

  /// Whether it is in the owner's list of connections that have something to do. Set by the owner.
  bool listed = false;

 private:
  bool fail(int error, Time now);
  bool connect(Time now);
  bool upward(Time now);    ///< from the connection into the stream
  bool downward(Time now);  ///< from the stream into the connection

  StreamApi& lanes_;
  StreamHandle stream_;
  std::unique_ptr<StreamSocket> socket_;
  std::optional<StreamPair> taken_;
  bool connecting_;
  bool canRead_ = false, canWrite_;
  bool failed_ = false;
  bool finished_ = false;  ///< the connection's last byte was put into the stream
  bool shut_ = false;      ///< the stream's last byte was written to the connection
  bool more_ = false;
  StreamCause cause_ = StreamCause::kReset;
};

/// The StreamCause to tell the other end for an errno of a connection.
StreamCause causeOf(int error);

}  // namespace braid
