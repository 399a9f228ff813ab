#pragma once

// What the two directions of a session, Outbound and Inbound, work on.

#include "base/packet.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/packet_lane.h"
#include "tunnel/lane/stream_lane.h"
#include "tunnel/protect/block_receiver.h"
#include "tunnel/protect/protector.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/key_renewal.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_owner.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow_set.h"
#include "tunnel/wire/version.h"

namespace braid {

/// Each belongs to the session and outlives both.
struct SessionParts {
  const SessionOptions& options;
  PacketPool& pool;
  DatagramSealer& sealer;
  PathManager& paths;
  SubflowSet& subflows;  ///< those of `paths`
  ControlFrames& controls;
  KeyRenewal& renewal;
  DataLedger& ledger;
  FairRound& round;
  PacketLane& packets;
  StreamLane& streams;
  Protector& protector;
  BlockReceiver& receiver;
  SessionOwner& owner;
  ProtocolVersion version = kProtocolVersions.front();  ///< of this session
};

}  // namespace braid
