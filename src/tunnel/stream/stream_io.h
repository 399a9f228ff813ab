#pragma once

// What a stream and the driver that holds the TCP connection at its end exchange: handles, events,
// counts.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/field.h"
#include "base/time.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The driver's name for a stream, unique across all peers. It is never reused: a handle that
/// outlives its stream names nothing, and every call with it does nothing.
struct StreamHandle {
  uint32_t place = 0;
  uint32_t generation = 0;  ///< from 1; 0: no stream

  explicit operator bool() const { return generation != 0; }
  auto operator<=>(const StreamHandle&) const = default;
};

/// What happened to a stream since its last event. Several fields may be set.
struct StreamEvent {
  StreamHandle stream;
  /// The peer has opened it: connect to the destination of its ends. The stream's first event.
  bool opened = false;
  /// The destination has accepted the connection. Only of streams of openAsking(), and once.
  bool answered = false;
  /// Bytes came, or the end of the stream: read until readable() is 0, then look at isAtEnd().
  bool readable = false;
  /// writable() had returned less than the driver asked for, and more can be written now.
  bool writable = false;
  /// Everything that was written has arrived and everything that came was read, both to the end.
  /// The handle is dead.
  bool done = false;
  /// Why the stream was reset. What was not read is lost, and the handle is dead.
  std::optional<StreamCause> reset{};
};

/// The streams of a session, counted since it began.
struct StreamCounts {
  uint64_t streamsOpened = 0;    ///< opened by this side
  uint64_t streamsAccepted = 0;  ///< opened by the peer
  uint64_t streamsDone = 0;      ///< both directions came to their ends
  uint64_t streamSentBytes = 0, streamReceivedBytes = 0;
  /// Streams that ended before, by cause, whichever side reset them.
  uint64_t streamsReset = 0, streamsRefused = 0, streamsUnreachable = 0, streamsTimedOut = 0,
           streamsLimited = 0, streamsGone = 0, streamsForbidden = 0;
  uint64_t streamsTurnedAway = 0;  ///< opened by the peer, refused before they began

  void countReset(StreamCause cause) {
    constexpr std::array kOf{&StreamCounts::streamsReset,       &StreamCounts::streamsRefused,
                             &StreamCounts::streamsUnreachable, &StreamCounts::streamsTimedOut,
                             &StreamCounts::streamsLimited,     &StreamCounts::streamsGone,
                             &StreamCounts::streamsForbidden};
    static_assert(kOf.size() == kStreamCauses);
    ++(this->*kOf[static_cast<size_t>(cause)]);
  }
};
template <>
inline constexpr auto kFieldsOf<StreamCounts> = field::table<StreamCounts>(
    field::counter("streams_opened", FieldUnit::kNone, "streams that this gateway has opened",
                   &StreamCounts::streamsOpened),
    field::counter("streams_accepted", FieldUnit::kNone, "streams that the peer has opened",
                   &StreamCounts::streamsAccepted),
    field::counter("streams_done", FieldUnit::kNone, "streams that came to both their ends",
                   &StreamCounts::streamsDone),
    field::counter("streams_sent_bytes", FieldUnit::kBytes,
                   "bytes of streams sent, each counted once", &StreamCounts::streamSentBytes),
    field::counter("streams_received_bytes", FieldUnit::kBytes,
                   "bytes of streams that came, in order and each counted once",
                   &StreamCounts::streamReceivedBytes),
    field::counter("streams_reset", FieldUnit::kNone, "streams that a host has reset",
                   &StreamCounts::streamsReset),
    field::counter("streams_refused", FieldUnit::kNone, "streams that their destination refused",
                   &StreamCounts::streamsRefused),
    field::counter("streams_unreachable", FieldUnit::kNone,
                   "streams with a destination that cannot be reached",
                   &StreamCounts::streamsUnreachable),
    field::counter("streams_timed_out", FieldUnit::kNone,
                   "streams with a destination that did not answer, or a host that fell silent",
                   &StreamCounts::streamsTimedOut),
    field::counter("streams_limited", FieldUnit::kNone,
                   "streams that ended at a bound on number or memory",
                   &StreamCounts::streamsLimited),
    field::counter(
        "streams_session_lost", FieldUnit::kNone,
        "streams that ended with their session, or because it had no path for `delivery-timeout`",
        &StreamCounts::streamsGone),
    field::counter("streams_forbidden", FieldUnit::kNone,
                   "streams with a source that is none of the peer's, or a destination that is not "
                   "for streams",
                   &StreamCounts::streamsForbidden),
    field::counter(
        "streams_rejected", FieldUnit::kNone,
        "streams of the peer that were refused before they began: beyond its rate limit, or "
        "there were too "
        "many; one that comes again counts again",
        &StreamCounts::streamsTurnedAway));

/// One stream, as shown to the operator.
struct StreamStatus {
  std::string name, state;
  uint64_t sentBytes = 0, receivedBytes = 0;
  uint64_t queuedBytes = 0, unacked = 0, heldBytes = 0;
  Duration age{}, firstByte{}, idle{};
};
template <>
inline constexpr auto kFieldsOf<StreamStatus> = field::table<StreamStatus>(
    field::text("name", "source and destination: `tcp 10.0.0.1:50000 > 10.0.0.2:443`",
                &StreamStatus::name),
    field::text("state",
                "`open`, `sent` (this side has finished), `received` (the other has), `closing`",
                &StreamStatus::state),
    field::gauge("sent_bytes", FieldUnit::kBytes,
                 "bytes that this gateway has taken for the stream", &StreamStatus::sentBytes),
    field::gauge("received_bytes", FieldUnit::kBytes, "bytes that came, in order",
                 &StreamStatus::receivedBytes),
    field::gauge("queued_bytes", FieldUnit::kBytes, "what waits to be sent",
                 &StreamStatus::queuedBytes),
    field::gauge("unacked_packets", FieldUnit::kPackets, "units sent and not known delivered",
                 &StreamStatus::unacked),
    field::gauge("held_bytes", FieldUnit::kBytes, "buffers that wait for their reader or for order",
                 &StreamStatus::heldBytes),
    field::gauge("age_s", FieldUnit::kSeconds, "since it was opened", &StreamStatus::age),
    field::gauge("first_byte_s", FieldUnit::kSeconds,
                 "from the opening to the first byte of the other side; 0: none came",
                 &StreamStatus::firstByte),
    field::gauge("idle_s", FieldUnit::kSeconds,
                 "since its last byte in either direction; 0: something of it is under way",
                 &StreamStatus::idle));

}  // namespace braid
