#pragma once

// What the parts of protection share: the session's rooms that they read and send by.

#include <algorithm>

#include "base/packet.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/trace.h"
#include "tunnel/protect/protect_options.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

/// All of it outlives protection.
struct ProtectionContext {
  const ProtectOptions& options;
  const RecoveryOptions& recovery;
  SubflowSet& subflows;
  DataLedger& ledger;
  PacketPool& pool;
  DatagramSealer& sealer;
  const RecoveryTrace& trace;
};

/// When the peer's word on protection sent now should be here: protection on `on` of what went on `of`. Not
/// later than the own path would tell of a loss (RFC 9002 section 6.1.2), lest a slow path holds repairs up.
inline Duration answerTime(const Subflow& of, const Subflow& on) {
  return std::min(of.path().rtt().smoothed(), on.path().rtt().smoothed()) * 9 / 8;
}

/// Sends the datagram, which holds copies of what went in packet `pn` of `of`.
inline bool sendCopies(const ProtectionContext& context, DatagramBuilder& build, Subflow& of, PacketNumber pn,
                       Datagram& out, Time now) {
  Subflow& on = build.subflow();
  for (const Datum* datum : build.data()) context.ledger.onCopied(datum, now + answerTime(of, on));
  build.addAck(now);
  on.sender().tally().onCopySent(build.used());
  context.trace.note({.kind = TraceEvent::Kind::kCopySent,
                      .time = now,
                      .subflow = of.id(),
                      .on = on.id(),
                      .pn = pn,
                      .onPn = build.packetNumber()});
  return build.finish(context.sealer, out, now);
}

}  // namespace braid
