#pragma once

#include <array>
#include <cstdint>

#include "base/field.h"
#include "tunnel/lane/stream_io.h"

namespace braid {

/// The TCP connections of streams at this gateway, since the daemon began.
struct StreamFigures {
  bool on = false;
  bool taking = false;
  uint64_t open = 0, most = 0;
  uint64_t accepted = 0, connected = 0, closed = 0;
  uint64_t refusedHere = 0, lifts = 0;
  uint64_t reset = 0, refused = 0, unreachable = 0, timedOut = 0, limit = 0, gone = 0, forbidden = 0;

  /// The peer or this gateway's connection ended a stream so.
  void count(StreamCause cause) {
    constexpr std::array kOf{&StreamFigures::reset,    &StreamFigures::refused, &StreamFigures::unreachable,
                             &StreamFigures::timedOut, &StreamFigures::limit,   &StreamFigures::gone,
                             &StreamFigures::forbidden};
    static_assert(kOf.size() == kStreamCauses);
    ++(this->*kOf[static_cast<size_t>(cause)]);
  }
};
template <>
inline constexpr auto kFieldsOf<StreamFigures> = field::table<StreamFigures>(
    field::flag("on", "streams are switched on", &StreamFigures::on),
    field::flag("taking", "new TCP connections are taken over now", &StreamFigures::taking),
    field::gauge("open", FieldUnit::kNone, "connections that are open", &StreamFigures::open),
    field::gauge("limit", FieldUnit::kNone, "connections that there may be", &StreamFigures::most),
    field::counter("accepted", FieldUnit::kNone, "connections of hosts here that were taken over",
                   &StreamFigures::accepted),
    field::counter("connected", FieldUnit::kNone,
                   "connections to hosts here that were opened for the peers' hosts",
                   &StreamFigures::connected),
    field::counter("closed", FieldUnit::kNone, "connections that came to their end in order",
                   &StreamFigures::closed),
    field::counter(
        "turned_away", FieldUnit::kNone,
        "connections that were reset at once: no peer could take them any more, or there was no room",
        &StreamFigures::refusedHere),
    field::counter("lifted", FieldUnit::kNone,
                   "times that new connections were left to the packet lane for want of room",
                   &StreamFigures::lifts),
    field::counter("ended_reset", FieldUnit::kNone, "connections that a host has reset",
                   &StreamFigures::reset),
    field::counter("ended_refused", FieldUnit::kNone, "that the destination refused",
                   &StreamFigures::refused),
    field::counter("ended_unreachable", FieldUnit::kNone, "whose destination cannot be reached",
                   &StreamFigures::unreachable),
    field::counter("ended_timed_out", FieldUnit::kNone,
                   "whose destination did not answer, or whose host fell silent", &StreamFigures::timedOut),
    field::counter("ended_limit", FieldUnit::kNone, "that ended at a bound on their number or memory",
                   &StreamFigures::limit),
    field::counter("ended_gone", FieldUnit::kNone,
                   "that ended with the session, or because it had no path for too long",
                   &StreamFigures::gone),
    field::counter("ended_forbidden", FieldUnit::kNone,
                   "whose source is none of the peer's, or whose destination is not for streams",
                   &StreamFigures::forbidden));

}  // namespace braid
