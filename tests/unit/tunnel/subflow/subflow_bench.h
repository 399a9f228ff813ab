#pragma once

// A set of subflows with keys at both ends, to test classes that send on them.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/tunnel/queue/some_flows.h"
#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow.h"
#include "tunnel/wire/frame_table.h"

namespace braid {

struct SubflowBench : testing::Test {
  static constexpr Duration kRtt = 40ms;
  static constexpr uint32_t kSession = 7;

  PacketPool pool{2048, 4000};
  SubflowOptions options;
  SomeFlows flows;
  Flow& flow = flows.make();
  KeptPackets packets;  // what the data tracker reports
  DataTracker dataTracker{3s, &packets.in()};
  ControllerGroup group;
  SubflowEvents events;
  SecretRandom random{knownKey(3)};
  Time now = Time{} + 1s;
  SubflowSet subflows;
  SessionSecrets secrets{};
  std::optional<KeyRing> keys;
  std::optional<KeySchedule> peersKeys;
  std::optional<DatagramSealer> sealer;

  void SetUp() override { useKeys({}); }
  void useKeys(const KeyLimits& limits) {
    keys.emplace(secrets, KeySchedule::Role::kInitiator, limits, now);
    peersKeys.emplace(secrets, KeySchedule::Role::kResponder, KeyLimits{}, now);
    sealer.emplace(kSession, *keys);
  }
  /// A subflow on which the peer has not answered yet.
  Subflow& add(uint8_t id, const std::string& name = {}) {
    auto socket = static_cast<SocketId>(id + 1);
    Route route{socket, {}, *Endpoint::parse("192.0.2.1:" + std::to_string(4000 + id))};
    return subflows.add(std::make_unique<Subflow>(SubflowId(id), "", route, true, options, events,
                                                  dataTracker, group, random, now),
                        name);
  }
  /// Lets the peer answer on it after `rtt`.
  void activate(Subflow& s, Duration rtt = kRtt) {
    auto frame = s.takePathFrame(now);
    ASSERT_TRUE(frame && frame->challenge);
    now += rtt;
    s.onPathResponse(frame->challenge->token, frame->route, now);
    ASSERT_TRUE(s.usable());
  }
  Subflow& open(uint8_t id, Duration rtt = kRtt) {
    Subflow& s = add(id);
    activate(s, rtt);
    return s;
  }
  /// A packet of the flow, about to be sent.
  UnitRef make(size_t size = 100) { return make(flow, size); }
  UnitRef make(Flow& of, size_t size) {
    Packet packet = pool.allocate();
    packet.append(size);
    return dataTracker.create(of, std::move(packet), now);
  }
  /// Adds the packet to the datagram and tells the data tracker.
  void put(DatagramBuilder& build, UnitRef d) {
    build.addUnit(d);
    dataTracker.onSent(d, build.subflow().id(), build.packetNumber());
  }
  /// Sends a datagram with these packets. Returns its packet number.
  PacketNumber send(Subflow& s, std::initializer_list<UnitRef> data) {
    DatagramBuilder build(s, pool.allocate());
    for (UnitRef d : data) put(build, d);
    Datagram out;
    EXPECT_TRUE(build.finish(*sealer, out, now));
    return build.packetNumber();
  }
  PacketNumber ping(Subflow& s) {
    DatagramBuilder build(s, pool.allocate());
    build.addTracked(PingFrame{});
    Datagram out;
    EXPECT_TRUE(build.finish(*sealer, out, now));
    return build.packetNumber();
  }
  void ack(Subflow& s, PacketNumber first, PacketNumber last) {
    AckFrame frame;
    frame.subflow = s.id();
    frame.count = 1;
    frame.ranges[0] = {first, last};
    s.onAck(frame, true, now);
  }
  /// Three later packets are acknowledged after a round trip, so that packet `pn` counts as lost.
  void lose(Subflow& s, PacketNumber pn) {
    PacketNumber first = ping(s);
    ping(s);
    PacketNumber last = ping(s);
    now += kRtt;
    ack(s, std::max(first, pn + 1), last);
  }
  /// The frames in the datagram, as the peer reads them. The datagram must outlive them.
  std::vector<WireFrame> read(Datagram& datagram) {
    std::optional<DatagramHeader> header = readHeader(datagram.bytes.view());
    EXPECT_TRUE(header);
    EXPECT_EQ(header->session, kSession);
    ByteSpan sealed = datagram.bytes.span().subspan(kHeaderSize);
    EXPECT_TRUE(peersKeys->open(header->epoch, header->subflow, PacketNumber(header->packetNumber),
                                datagram.bytes.view().first(kHeaderSize), sealed, now));
    FrameReader reader(sealed.first(sealed.size() - kTagSize));
    std::vector<WireFrame> frames;
    while (auto frame = reader.next()) frames.push_back(*frame);
    EXPECT_TRUE(reader.ok());
    return frames;
  }
  template <typename F>
  static std::vector<F> only(const std::vector<WireFrame>& frames) {
    std::vector<F> some;
    for (const WireFrame& frame : frames) {
      if (const F* f = std::get_if<F>(&frame)) some.push_back(*f);
    }
    return some;
  }
};

}  // namespace braid
