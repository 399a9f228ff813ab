#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/field.h"
#include "base/time.h"
#include "host/datagram_socket.h"
#include "host/tun_device.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/api/status.h"
#include "tunnel/stream/stream_io.h"

namespace braid {

/// TCP connections that this gateway carries as streams; counted since the daemon started.
struct StreamFigures {
  bool on = false;
  bool taking = false;
  uint64_t open = 0, connecting = 0, most = 0;
  uint64_t declined = 0;
  uint64_t accepted = 0, connected = 0, closed = 0;
  uint64_t refusedHere = 0, lifts = 0;
  uint64_t reset = 0, refused = 0, unreachable = 0, timedOut = 0, limit = 0, gone = 0,
           forbidden = 0;

  /// Counts a stream that ended for this cause, given by the peer or by this gateway's connection.
  void count(StreamCause cause) {
    constexpr std::array kOf{&StreamFigures::reset,       &StreamFigures::refused,
                             &StreamFigures::unreachable, &StreamFigures::timedOut,
                             &StreamFigures::limit,       &StreamFigures::gone,
                             &StreamFigures::forbidden};
    static_assert(kOf.size() == kStreamCauses);
    ++(this->*kOf[static_cast<size_t>(cause)]);
  }
};
template <>
inline constexpr auto kFieldsOf<StreamFigures> = field::table<StreamFigures>(
    field::flag("on", "streams are switched on", &StreamFigures::on),
    field::flag("intercepting", "new TCP connections are taken over now", &StreamFigures::taking),
    field::gauge("open", FieldUnit::kNone, "connections that are open", &StreamFigures::open),
    field::gauge("connecting", FieldUnit::kNone,
                 "connections of hosts here that wait until their destination has accepted "
                 "(`connect: first`)",
                 &StreamFigures::connecting),
    field::gauge("limit", FieldUnit::kNone, "connections that there may be", &StreamFigures::most),
    field::counter("accepted", FieldUnit::kNone, "connections of hosts here that were taken over",
                   &StreamFigures::accepted),
    field::counter("declined", FieldUnit::kNone,
                   "connections of hosts here that were not accepted, because their destination "
                   "did not accept (`connect: first`)",
                   &StreamFigures::declined),
    field::counter("connected", FieldUnit::kNone,
                   "connections to hosts here that were opened for the peers' hosts",
                   &StreamFigures::connected),
    field::counter("closed", FieldUnit::kNone, "connections that came to their end in order",
                   &StreamFigures::closed),
    field::counter("rejected", FieldUnit::kNone,
                   "connections that were reset at once: no peer could take them any more, or "
                   "there was no room",
                   &StreamFigures::refusedHere),
    field::counter("bypassed", FieldUnit::kNone,
                   "times that new connections were left as packets for want of room",
                   &StreamFigures::lifts),
    field::counter("ended_reset", FieldUnit::kNone, "connections that a host has reset",
                   &StreamFigures::reset),
    field::counter("ended_refused", FieldUnit::kNone, "that the destination refused",
                   &StreamFigures::refused),
    field::counter("ended_unreachable", FieldUnit::kNone, "whose destination cannot be reached",
                   &StreamFigures::unreachable),
    field::counter("ended_timed_out", FieldUnit::kNone,
                   "whose destination did not answer, or whose host fell silent",
                   &StreamFigures::timedOut),
    field::counter("ended_limit", FieldUnit::kNone,
                   "that ended at a bound on their number or memory", &StreamFigures::limit),
    field::counter("ended_session_lost", FieldUnit::kNone,
                   "that ended with the session, or because it had no path for too long",
                   &StreamFigures::gone),
    field::counter("ended_forbidden", FieldUnit::kNone,
                   "whose source is none of the peer's, or whose destination is not for streams",
                   &StreamFigures::forbidden));

/// The meter of an uplink, and the end of its period.
struct MeterPeriodStatus : MeterReading {
  int64_t until = 0;
};
template <>
inline constexpr auto kFieldsOf<MeterPeriodStatus> = field::table<MeterPeriodStatus>(
    field::base<MeterReading>(), field::gauge("until_unix_s", FieldUnit::kUnixSeconds,
                                              "end of the period", &MeterPeriodStatus::until));

/// What Braid has carried over an uplink, in both directions, with UDP and IP headers.
struct CarriedStatus {
  uint64_t today = 0, month = 0, bytes = 0;
};
template <>
inline constexpr auto kFieldsOf<CarriedStatus> = field::table<CarriedStatus>(
    field::gauge("today_bytes", FieldUnit::kBytes,
                 "bytes carried since midnight, in both directions with UDP and IP headers",
                 &CarriedStatus::today),
    field::gauge("month_bytes", FieldUnit::kBytes, "the same since the first of the month",
                 &CarriedStatus::month),
    field::counter("bytes", FieldUnit::kBytes, "the same since the daemon began",
                   &CarriedStatus::bytes));

/// An uplink as the host sees it now.
struct UplinkStatus {
  std::string name;
  std::string interface;
  bool up = false;
  std::vector<std::string> addresses;
  std::string gateway;
  std::string use = "normal";
  unsigned weight = 1;
  uint64_t upLimit = 0, downLimit = 0;
  std::optional<MeterPeriodStatus> meter = std::nullopt;
  std::vector<std::string> resolvers{};
  std::string resolversFrom{};
  std::string portal{}, portalOpen{};
  std::optional<CarriedStatus> carried = std::nullopt;
  double availability = std::numeric_limits<double>::quiet_NaN();
};
template <>
inline constexpr auto kFieldsOf<UplinkStatus> = field::table<UplinkStatus>(
    field::text("name", "name of the uplink", &UplinkStatus::name),
    field::text("interface", "network interface", &UplinkStatus::interface),
    field::flag("up", "it can be used", &UplinkStatus::up),
    field::text("addresses", "local addresses in use, a list", &UplinkStatus::addresses),
    field::remark("gateway", "next hops; null: the main table's", &UplinkStatus::gateway),
    field::text("use", "what it is for: `normal`, `metered`, `backup`", &UplinkStatus::use),
    field::gauge("weight", FieldUnit::kNone, "share among the normal ones", &UplinkStatus::weight),
    field::gauge("up_limit_bytes_per_s", FieldUnit::kBytesPerSecond,
                 "ceiling of what is sent; 0: none", &UplinkStatus::upLimit),
    field::gauge("down_limit_bytes_per_s", FieldUnit::kBytesPerSecond,
                 "ceiling of what the peers send; 0: none", &UplinkStatus::downLimit),
    field::object("metered", "its meter; null: none", &UplinkStatus::meter),
    field::text("resolvers", "DNS servers that were asked for the peers' names over it, a list",
                &UplinkStatus::resolvers),
    field::remark("resolvers_from", "who names them; null: nobody was asked",
                  &UplinkStatus::resolversFrom),
    field::remark("portal", "page of the captive portal that keeps it shut; null: none was found",
                  &UplinkStatus::portal),
    field::remark("portal_open",
                  "what hosts of the LAN reach of it, and why not the rest; null: there is none",
                  &UplinkStatus::portalOpen),
    field::object("carried", "what it carried; null: that cannot be kept", &UplinkStatus::carried),
    field::gauge("availability", FieldUnit::kFraction,
                 "share of the last 24 hours, or of the time since the daemon began, in which a "
                 "path over it worked; null: not known yet",
                 &UplinkStatus::availability));

/// What was lost between the kernel and the tunnel since the daemon started.
struct HostDrops : SocketDrops, DeviceDrops {
  uint64_t socketClosed = 0;
};
template <>
inline constexpr auto kFieldsOf<HostDrops> = field::table<HostDrops>(
    field::base<SocketDrops>(), field::base<DeviceDrops>(),
    field::counter("socket_closed", FieldUnit::kPackets,
                   "datagrams for a socket that was closed meanwhile", &HostDrops::socketClosed));

/// What passed through all sockets and the device since the daemon started.
struct HostTraffic : SocketTraffic, DeviceTraffic {};
template <>
inline constexpr auto kFieldsOf<HostTraffic> =
    field::table<HostTraffic>(field::base<SocketTraffic>(), field::base<DeviceTraffic>());

/// The recovery trace (trace_writer.h).
struct TraceStatus {
  bool on = false;
  uint64_t written = 0, dropped = 0;
  std::string problem;
};
template <>
inline constexpr auto kFieldsOf<TraceStatus> = field::table<TraceStatus>(
    field::flag("on", "the trace is on", &TraceStatus::on),
    field::counter("written", FieldUnit::kNone, "events written", &TraceStatus::written),
    field::counter("dropped", FieldUnit::kNone, "events that the file did not take",
                   &TraceStatus::dropped),
    field::remark("problem", "why the last ones were dropped; null: none, or too many came at once",
                  &TraceStatus::problem));

/// What the daemon knows besides the tunnel.
struct GatewayStatus {
  std::string version;
  std::string config;
  std::string pin;
  std::string device;
  std::string mode;
  uint64_t pid = 0;
  Duration uptime{};
  uint64_t deviceMtu = 0;
  uint64_t lostLogLines = 0;
  std::vector<std::string> unconfined;
  std::vector<std::string> listen;
  std::vector<UplinkStatus> uplinks;
  HostDrops drops;
  HostTraffic traffic;
  RecoveryOptions recovery;  ///< with the measured decode times
  TraceStatus trace;
  StreamFigures streams;
};
template <>
inline constexpr auto kFieldsOf<GatewayStatus> = field::table<GatewayStatus>(
    field::text("version", "version of the daemon", &GatewayStatus::version),
    field::text("config", "path of the configuration file", &GatewayStatus::config),
    field::text("pin", "pin of this gateway, `sha256:BASE64`", &GatewayStatus::pin),
    field::text("device", "name of the device", &GatewayStatus::device),
    field::text("mode", "`tun` or `tap`", &GatewayStatus::mode),
    field::text("pid", "number of the process", &GatewayStatus::pid),
    field::gauge("uptime_s", FieldUnit::kSeconds, "time since the daemon began",
                 &GatewayStatus::uptime),
    field::gauge("device_mtu_bytes", FieldUnit::kBytes, "largest packet of the device",
                 &GatewayStatus::deviceMtu),
    field::counter("log_lines_lost", FieldUnit::kNone, "lines that the log did not take",
                   &GatewayStatus::lostLogLines),
    field::text("unconfined",
                "what the process keeps beyond what it needs, and why, a list: "
                "\"user: ...\", \"files: ...\", \"system calls: ...\"",
                &GatewayStatus::unconfined),
    field::text("listen", "addresses and ports that peers may reach, a list",
                &GatewayStatus::listen),
    field::object("uplinks", "the uplinks, a list", &GatewayStatus::uplinks),
    field::unlisted(&GatewayStatus::drops),  // these are listed beside the gateway, not in it
    field::unlisted(&GatewayStatus::traffic), field::unlisted(&GatewayStatus::recovery),
    field::unlisted(&GatewayStatus::trace), field::unlisted(&GatewayStatus::streams));

}  // namespace braid
