// Reads the test vectors of docs/protocol.md and recomputes them. A vector counts as reproduced
// (target shield.10) when a test with its name in the property "vector" passes.

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <string>

#include "coding/block_encoder.h"
#include "tests/unit/tunnel/wire/document_vector.h"
#include "tests/unit/tunnel/wire/frame_bytes.h"
#include "tests/unit/tunnel/wire/hex.h"
#include "tunnel/wire/frame_payloads.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/key_schedule.h"

namespace braid::protocol_vectors_test {
namespace {

using test::arrayOf;
using test::Vector;

constexpr Time kNow{1s};

Bytes expand(const Bytes& secret, std::string_view label, size_t size) {
  Bytes out(size);
  hkdfExpandLabel(secret, label, out);
  return out;
}

TEST(ProtocolVectors, Envelope) {
  Vector v("V1");
  Pin pin = arrayOf<32>(v["pin"]);
  std::array<uint8_t, 32> salt{};
  Bytes base(32);
  HMAC(EVP_sha256(), salt.data(), static_cast<int>(salt.size()), pin.data(), pin.size(),
       base.data(), nullptr);
  EXPECT_EQ(expand(base, "braid hs i", 32), v["key_initiator"]);
  EXPECT_EQ(expand(base, "braid hs r", 32), v["key_responder"]);

  using Side = HandshakeEnvelope::Side;
  HandshakeEnvelope initiator(Side::kInitiator, pin), responder(Side::kResponder, pin);
  HandshakeHeader header;
  header.id = arrayOf<8>(v["id"]);
  header.nonce = arrayOf<12>(v["nonce"]);
  header.cookie = arrayOf<16>(v["cookie"]);
  PacketPool pool(2048, 1);
  auto sealed = [&](HandshakeEnvelope& seal, HandshakeKind kind, const Bytes& body) {
    header.kind = kind;
    Packet packet = pool.copy(body);
    EXPECT_TRUE(seal.seal(header, packet));
    return Bytes(packet.view().begin(), packet.view().end());
  };
  EXPECT_EQ(sealed(initiator, HandshakeKind::kInitiator, v["body"]), v["initiator"]);
  EXPECT_EQ(sealed(responder, HandshakeKind::kResponder, v["body"]), v["responder"]);
  EXPECT_EQ(sealed(responder, HandshakeKind::kCookieRequest, v["cookie"]), v["cookie_request"]);

  Bytes datagram = v["initiator"];
  auto opened = responder.open(datagram);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->header.cookie, header.cookie);
  EXPECT_TRUE(std::ranges::equal(opened->body, v["body"]));
}

TEST(ProtocolVectors, Keys) {
  Vector v("V2");
  Bytes exporter = v["exporter"];
  ASSERT_EQ(exporter.size(), 68u);
  EXPECT_EQ(Bytes(exporter.begin(), exporter.begin() + 32), v["i_secret"]);
  EXPECT_EQ(Bytes(exporter.begin() + 32, exporter.begin() + 64), v["r_secret"]);
  EXPECT_EQ(Bytes(exporter.begin() + 64, exporter.end()), v["session"]);
  for (std::string side : {"i_", "r_"}) {
    SCOPED_TRACE(side);
    EXPECT_EQ(expand(v[side + "secret"], "braid key", 16), v[side + "key16"]);
    EXPECT_EQ(expand(v[side + "secret"], "braid key", 32), v[side + "key32"]);
    EXPECT_EQ(expand(v[side + "secret"], "braid iv", 12), v[side + "iv"]);
    EXPECT_EQ(expand(v[side + "secret"], "braid ku", 32), v[side + "next_secret"]);
    EXPECT_EQ(expand(v[side + "next_secret"], "braid key", 16), v[side + "next_key16"]);
    EXPECT_EQ(expand(v[side + "next_secret"], "braid iv", 12), v[side + "next_iv"]);
  }
}

/// Of V2.
SessionSecrets sessionOfVectors(AeadKind aead) {
  test::Values v = test::valuesOf("V2");
  SessionSecrets secrets;
  secrets.aead = aead;
  secrets.initiatorSecret = arrayOf<32>(v["i_secret"]);
  secrets.responderSecret = arrayOf<32>(v["r_secret"]);
  secrets.sessionId = load32(v["session"].data());
  return secrets;
}

/// One side of the vectors' session, which seals and opens the datagram of V3.
struct VectorSide {
  VectorSide(AeadKind aead, KeySchedule::Role role)
      : secrets(sessionOfVectors(aead)), keys(secrets, role, {}, kNow) {}

  Bytes seal(SubflowId subflow, PacketNumber pn, const Bytes& frames) {
    Bytes out(kHeaderSize + frames.size() + kTagSize);
    writeHeader({kWireVersion, keys.epochBits(), secrets.sessionId, subflow,
                 static_cast<uint32_t>(pn.value())},
                out.data());
    ByteView piece = frames;
    EXPECT_TRUE(keys.seal(subflow, pn, ByteView(out).first(kHeaderSize), {&piece, 1},
                          out.data() + kHeaderSize));
    return out;
  }
  Bytes open(SubflowId subflow, PacketNumber pn, Bytes datagram) {
    auto header = readHeader(datagram);
    EXPECT_TRUE(header && header->session == secrets.sessionId && header->subflow == subflow);
    EXPECT_EQ(expandPacketNumber(header->packetNumber, pn), pn);
    EXPECT_TRUE(keys.open(header->epoch, subflow, pn, ByteView(datagram).first(kHeaderSize),
                          ByteSpan(datagram).subspan(kHeaderSize), kNow));
    return {datagram.begin() + kHeaderSize, datagram.end() - kTagSize};
  }

  SessionSecrets secrets;
  KeySchedule keys;
};

TEST(ProtocolVectors, SealedDatagram) {
  using Role = KeySchedule::Role;
  VectorSide initiator(AeadKind::kAes128Gcm, Role::kInitiator),
      responder(AeadKind::kAes128Gcm, Role::kResponder);
  VectorSide other(AeadKind::kChaCha20Poly1305, Role::kInitiator);
  Vector v("V3");
  SubflowId subflow(v["subflow"].at(0));
  PacketNumber pn(load64(v["number"].data()));
  EXPECT_EQ(initiator.seal(subflow, pn, v["frames"]), v["i_aes128"]);
  EXPECT_EQ(other.seal(subflow, pn, v["frames"]), v["i_chacha20"]);
  EXPECT_EQ(responder.open(subflow, pn, v["i_aes128"]), v["frames"]);
  ASSERT_TRUE(responder.keys.rekey(kNow));
  EXPECT_EQ(responder.seal(subflow, pn, v["frames"]), v["r_next_aes128"]);
  EXPECT_EQ(initiator.open(subflow, pn, v["r_next_aes128"]), v["frames"]);

  Bytes frames = v["frames"];
  FrameReader reader(frames);
  EXPECT_TRUE(std::holds_alternative<PingFrame>(reader.next().value()));
  auto data = std::get<DataFrame>(reader.next().value());
  EXPECT_EQ(data.flow, 3_flow);
  EXPECT_EQ(data.dsn, 9u);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ok());
}

TEST(ProtocolVectors, AckOfTwoRanges) {
  Vector v("V4");
  AckFrame ack;
  ack.subflow = 2_subflow;
  ack.delay = std::chrono::microseconds(2500);
  ack.ecn = {70, 0, 1};
  ack.count = 2;
  ack.ranges[0] = {990_pn, 1000_pn};
  ack.ranges[1] = {980_pn, 985_pn};
  EXPECT_EQ(encode(ack), v["ack"]);
  auto read = decodeOne<AckFrame>(v["ack"]);
  ASSERT_EQ(read.count, 2u);
  EXPECT_EQ(read.ranges[0].first, 990_pn);
  EXPECT_EQ(read.ranges[1].first, 980_pn);
  EXPECT_EQ(read.ranges[1].last, 985_pn);
}

TEST(ProtocolVectors, AckWithAReceiveTime) {
  Vector v("V13");
  Bytes plain = Vector("V4")["ack"];
  AckFrame ack = decodeOne<AckFrame>(plain);
  ack.received = ReceiveTime{123456789, true};
  EXPECT_EQ(encode(ack), v["ack"]);
  AckFrame read = decodeOne<TimedAckFrame>(v["ack"]).ack;
  ASSERT_TRUE(read.received);
  EXPECT_EQ(read.received->micros, 123456789u);
  EXPECT_TRUE(read.received->ofRun);
  read.received.reset();
  EXPECT_EQ(encode(read), plain);
}

TEST(ProtocolVectors, Parity) {
  Vector v("V5");
  BlockEncoder encoder(2048);
  encoder.begin();
  for (const char* name : {"symbol_0", "symbol_1", "symbol_2"}) {
    Bytes symbol = v[name];
    ByteView piece = symbol;
    ASSERT_TRUE(encoder.add({&piece, 1}));
  }
  for (size_t index : {0, 1, 2, 15}) {
    ByteView parity = encoder.parity(index);
    EXPECT_EQ(Bytes(parity.begin(), parity.end()), v["parity_" + std::to_string(index)]) << index;
  }
  BlockDescription block;
  block.block = 7;
  block.parities = 2;
  block.symbolSize = static_cast<uint16_t>(encoder.symbolSize());
  block.rangeCount = 3;
  block.ranges[0] = {0, 10, 1};
  block.ranges[1] = {0, 12, 1};
  block.ranges[2] = {3, 5, 1};
  Bytes parity = v["parity_1"];
  auto written = [&](size_t part) {
    Bytes out(parityHeaderSize(block));
    Writer writer(out);
    writeParityHeader(writer, block, 1, part);
    out.insert(out.end(), parity.begin(), parity.begin() + static_cast<ptrdiff_t>(part));
    return out;
  };
  EXPECT_EQ(written(parity.size()), v["frame"]);
  EXPECT_EQ(written(8), v["head"]);
  Bytes tail(kParityTailHeader);
  Writer writer(tail);
  writeParityTailHeader(writer, {7_block, 1, 8, ByteView(parity).subspan(8)});
  tail.insert(tail.end(), parity.begin() + 8, parity.end());
  EXPECT_EQ(tail, v["tail"]);
  // A named variable, because the bytes must outlive the frame that refers to them.
  Bytes frame = v["frame"];
  FrameReader reader(frame);
  auto read = std::get<ParityFrame>(reader.next().value());
  BlockDescription described = describe(read, [](SubflowId) { return 0_pn; });
  ASSERT_EQ(described.rangeCount, 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(described.ranges[i], block.ranges[i]) << i;
}

TEST(ProtocolVectors, Params) {
  Vector v("V6");
  constexpr uint64_t kNoise = 100 | uint64_t{3} << 16 | uint64_t{0xfffffffff} << 24;
  EXPECT_EQ(encode(ParamsFrame{{.largestDatagram = 1500}, kNoise}), v["params"]);
  Params read = decodeOne<ParamsFrame>(v["params"]).params;
  EXPECT_EQ(read.largestDatagram, 1500u);
  EXPECT_EQ(read.symbols, 1024u);
  EXPECT_EQ(read.heldSpan, 4096u);
  EXPECT_EQ(read.lanes, 1u);
}

TEST(ProtocolVectors, SubflowName) {
  Vector v("V10");
  EXPECT_EQ(encode(SubflowNameFrame{"wifi"}), v["name"]);
  EXPECT_EQ(encode(SubflowNameFrame{"LTE-2_home.example"}), v["longer"]);
  const Bytes name = v["name"];  // the frame refers to it
  EXPECT_EQ(decodeOne<SubflowNameFrame>(name).name, "wifi");
}

TEST(ProtocolVectors, ObservedAddress) {
  Vector v("V11");
  const Endpoint v4 = *Endpoint::parse("192.0.2.7:40000");
  const Endpoint v6 = *Endpoint::parse("[2001:db8::7]:443");
  EXPECT_EQ(encode(ObservedAddressFrame{v4}), v["v4"]);
  EXPECT_EQ(encode(ObservedAddressFrame{v6}), v["v6"]);
  EXPECT_EQ(decodeOne<ObservedAddressFrame>(v["v4"]).address, v4);
  EXPECT_EQ(decodeOne<ObservedAddressFrame>(v["v6"]).address, v6);
}

TEST(ProtocolVectors, CallToReturn) {
  Vector v("V7");
  RestartNotice call{0xa0b1c2d3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  PacketPool pool(2048, 1);
  Packet packet = pool.allocate();
  writeRestartNotice(call, packet);
  EXPECT_EQ(Bytes(packet.view().begin(), packet.view().end()), v["call"]);
  EXPECT_EQ(readRestartNotice(packet.view()), call);
}

TEST(ProtocolVectors, PresharedKey) {
  Vector v("V12");
  const SessionSecrets exported = sessionOfVectors(AeadKind::kAes128Gcm);
  const SessionSecrets mixed = mixedWith(PresharedKey(arrayOf<32>(v["psk"])), exported);
  EXPECT_EQ(mixed.sessionId, exported.sessionId);
  for (const auto& [side, secret] : {std::pair{std::string("i_"), mixed.initiatorSecret},
                                     {std::string("r_"), mixed.responderSecret}}) {
    Bytes bytes(secret.begin(), secret.end());
    EXPECT_EQ(bytes, v[side + "secret"]);
    EXPECT_EQ(expand(bytes, "braid key", 16), v[side + "key16"]);
    EXPECT_EQ(expand(bytes, "braid iv", 12), v[side + "iv"]);
  }
  PacketPool pool(2048, 1);
  Packet packet = pool.allocate();
  writeKeyNotice(keyNoticeOf(exported), packet);
  EXPECT_EQ(Bytes(packet.view().begin(), packet.view().end()), v["notice"]);
  EXPECT_EQ(readKeyNotice(packet.view()), keyNoticeOf(exported));
}

/// A STREAM frame of these parts.
Bytes streamFrame(uint8_t type, uint64_t offset, StreamId stream, const StreamOpening* opening,
                  const Bytes& data) {
  Bytes unit(kLargestStreamPrefix + data.size());
  Writer out(unit);
  writeStreamPrefix(out, stream, opening);
  out.bytes(data);
  unit.resize(out.size());
  Bytes frame(kDataFrameHeader);
  writeStreamHeader(type, offset, unit.size(), frame.data());
  frame.insert(frame.end(), unit.begin(), unit.end());
  return frame;
}

TEST(ProtocolVectors, TcpProxy) {
  Vector v("V8");
  StreamOpening v4{{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")}, 262144};
  StreamOpening v6{
      {*Endpoint::parse("[2001:db8::1]:50000"), *Endpoint::parse("[2001:db8:1::7]:8443")}, 16000};
  EXPECT_EQ(streamFrame(0x16, 0, StreamId(6), &v4, {'G', 'E', 'T'}), v["opening_v4"]);
  EXPECT_EQ(streamFrame(0x17, 0, StreamId(7), &v6, {}), v["opening_v6"]);
  StreamOpening asking = v4;
  asking.asks = true;
  EXPECT_EQ(streamFrame(0x16, 0, StreamId(8), &asking, {}), v["asking"]);
  EXPECT_EQ(streamFrame(0x14, 0x123456789a, StreamId(1000000), nullptr, {0xde, 0xad, 0xbe, 0xef}),
            v["range"]);
  EXPECT_EQ(streamFrame(0x15, 65536, StreamId(70), nullptr, {}), v["last"]);
  for (const char* name : {"opening_v4", "opening_v6", "asking", "range", "last"}) {
    Bytes bytes = v[name];
    auto frame = decodeOne<StreamFrame>(bytes);
    const StreamOpening* opening = frame.opening ? &*frame.opening : nullptr;
    Bytes data(frame.bytes.begin(), frame.bytes.end());
    EXPECT_EQ(streamFrame(frame.type, frame.offset, frame.stream, opening, data), bytes);
  }
  EXPECT_EQ(encode(StreamCreditFrame{StreamId(6), 1048576}), v["credit"]);
  EXPECT_EQ(encode(StreamResetFrame{StreamId(70), 1}), v["reset"]);
}

}  // namespace
}  // namespace braid::protocol_vectors_test
