// How flows are recognised by the first packets of their protocols. The QUIC packets are those of
// RFC 9001 appendix A and RFC 9369 appendix A. The packets of WireGuard (wireguard-go), OpenVPN
// (2.6.14 and older) and DTLS (OpenSSL 3.0) were captured; noise replaces the parts that are not
// inspected. The ESP packets are made by the specification.

#include "inet/datagram_sign.h"

#include <gtest/gtest.h>

#include <string_view>

#include "tests/unit/inet/packets.h"

namespace braid::datagram_sign_test {
namespace {

using test::Bytes;
using Sign = DatagramSign;

/// Bytes from hexadecimal digits, filled with noise up to `size`.
Bytes hex(std::string_view digits, size_t size = 0) {
  Bytes out;
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<uint8_t>(value(digits[i]) * 16 + value(digits[i + 1])));
  for (size_t i = out.size(); i < size; ++i) out.push_back(static_cast<uint8_t>(i * 151 + 7));
  return out;
}

Sign signOf(const Bytes& packet) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet);
  EXPECT_TRUE(ip);
  return ip ? datagramSign(*ip, packet) : Sign::kNone;
}

Sign of(const Bytes& payload, uint16_t sport = 40000, uint16_t dport = 443) {
  Sign v4 = signOf(test::v4({}, test::udp(sport, dport, payload)));
  EXPECT_EQ(signOf(test::v6({}, test::udp(sport, dport, payload))), v4);
  return v4;
}

TEST(DatagramSign, Quic) {
  EXPECT_EQ(of(hex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11", 1200)),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a", 135)),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba")),
            Sign::kOrdered)
      << "a Retry";
  EXPECT_EQ(of(hex("d36b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485", 1200)),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698", 135)),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("c0faceb00c088394c8f03e5157080000449e", 1200)), Sign::kOrdered) << "any version";
  EXPECT_EQ(of(hex("c0faceb00c088394c8f03e5157080000449e", 1199)), Sign::kNone) << "not padded";
  EXPECT_EQ(of(hex("fffaceb00c0008f067a5502a4262b5746f6b656e04a265ba2eff4d", 135)), Sign::kSetup)
      << "not padded, a server's Retry";
  EXPECT_EQ(of(hex("80faceb00c088394c8f03e5157080000449e", 1199)), Sign::kNone) << "may be RTP";
  EXPECT_EQ(of(hex("800000000008f067a5502a4262b5088394c8f03e515708000000016b3343cf")), Sign::kSetup)
      << "versions to choose from";
  EXPECT_EQ(of(hex("40f067a5502a4262b5", 1200)), Sign::kNone) << "a short header";
  EXPECT_EQ(of(hex("c000000001158394c8f03e515708", 1200)), Sign::kNone) << "an id of 21 bytes";
  EXPECT_EQ(of(hex("c00000000108")), Sign::kNone) << "cut off";
}

TEST(DatagramSign, WireGuard) {
  for (uint16_t port : {51820, 4444}) {
    EXPECT_EQ(of(hex("010000008aef4ae7582966dc8110d25047315a96", 148), 51820, port),
              Sign::kOrdered);
    EXPECT_EQ(of(hex("020000000321ab5d8aef4ae7f1076d2cffda3111", 92), port, 51820), Sign::kOrdered);
    EXPECT_EQ(of(hex("03000000d8b2f1a3", 64)), Sign::kOrdered);
    EXPECT_EQ(of(hex("040000000321ab5d0000000000000000", 32)), Sign::kOrdered) << "keepalive";
    EXPECT_EQ(of(hex("040000000321ab5d0700000000000000", 1456)), Sign::kOrdered);
    EXPECT_EQ(of(hex("040000008aef4ae7010000000000000042ff2960", 1452)), Sign::kOrdered)
        << "full, with the usual MTU of 1420";
    EXPECT_EQ(of(hex("040000008aef4ae707000000000000a1", 1452)), Sign::kNone) << "no counter";
    EXPECT_EQ(of(hex("040000008aef4ae70700000000000000", 100)), Sign::kNone) << "no multiple of 16";
  }
  EXPECT_EQ(of(hex("010000008aef4ae7", 147)), Sign::kNone);
  EXPECT_EQ(of(hex("010001008aef4ae7", 148)), Sign::kNone);
}

TEST(DatagramSign, TailscalesProbesSayThatWireGuardMayFollow) {
  EXPECT_EQ(of(hex("5453f09f92ac5c1a90f0", 116), 41641, 41641), Sign::kSetup);
  EXPECT_EQ(of(hex("5453f09f92ad5c1a90f0", 116), 41641, 41641), Sign::kNone);
  EXPECT_EQ(of(hex("5453f09f92ac")), Sign::kNone);
}

TEST(DatagramSign, OpenVpn) {
  Bytes client =
      hex("38813814621d67462dde86734d2cbff151b2b1231b61e42308a272818e0000000150ff262c0000000000");
  EXPECT_EQ(of(client, 33198, 1194), Sign::kOrdered) << "tls-auth with SHA-1";
  Bytes again = client, wild = client;
  again[32] = 3, wild[30] = 9;
  EXPECT_EQ(of(again), Sign::kOrdered) << "sent again";
  EXPECT_EQ(of(wild), Sign::kNone) << "no such counter";
  EXPECT_EQ(
      of(hex("40573714a917f36048885887cdb6dd77785d00d15edbbe9aa6203a45570000000150ff262b0100000000"
             "813814621d67462d00000000"),
         1194, 33198),
      Sign::kOrdered);
  EXPECT_EQ(of(hex("38b163856ece108ea40000000000")), Sign::kOrdered) << "plain";
  EXPECT_EQ(of(hex("40976824ad5258bfaa0100000000b163856ece108ea400000000"), 1194), Sign::kOrdered);
  EXPECT_EQ(of(hex("38bc79c01f4d470194065caa24e858719f65677c39f28a3ab6b28936ad8fb64e9d3f0e616c40a72"
                   "cf0000000016b054b"
                   "3b0000000000")),
            Sign::kOrdered)
      << "tls-auth with SHA-256";
  EXPECT_EQ(of(hex("40fde83ee7a65967778a5237ce7f4391602db0228e4927bd876c35a6ebe8acef48bab783d8d8ee1"
                   "0750000000"
                   "16b054b"
                   "3d0100000000bc79c01f4d47019400000000"),
               1194),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("38f63185d7e4fc3ccdf6b4347f4f01e2edc4be5e4638f99b65733518a0a2688507ca06b8ac5037f"
                   "538d0cb86d903a773"
                   "d35e8427a6193de88f4dadd4e1ee4b05314358f2fb90f27740000000016b054b440000000000")),
            Sign::kOrdered)
      << "tls-auth with SHA-512";
  EXPECT_EQ(of(hex("38bc308ae73b027645000000016b054b4613af5b792cdb1b6dc127", 54)), Sign::kOrdered)
      << "tls-crypt";
  EXPECT_EQ(of(hex("4010fa70ff42494325000000016b054b469010bd5f7f96a4c43f89", 66), 1194),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("5078baa7f3903f81d10f0000016b054b5009b60767c1b0935c238c", 353)), Sign::kOrdered)
      << "tls-crypt-v2";
  EXPECT_EQ(of(hex("40be70ab106965f36e000000016b054b50c3d8b9f62d602dba05f9", 72), 1194),
            Sign::kOrdered)
      << "the server of that, with what it offers";
  EXPECT_EQ(of(hex("40fd23c99fc52a681e0f0000016b054b50e6e065c3327cc3375de2", 66), 1194),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("38813814621d67462d01020304", 60)), Sign::kNone);
}

TEST(DatagramSign, EspInUdp) {
  EXPECT_EQ(of(hex("00000000a1b2c3d4e5f60718", 300), 4500, 4500), Sign::kSetup) << "IKE";
  EXPECT_EQ(of(hex("ff"), 4500, 4500), Sign::kSetup) << "keepalive";
  EXPECT_EQ(of(hex("c3a5f01700000001", 120), 4500, 4500), Sign::kOrdered);
  EXPECT_EQ(of(hex("c3a5f01700000001", 120), 4500, 61000), Sign::kOrdered) << "behind a NAT";
  EXPECT_EQ(of(hex("000000ff00000001", 120), 4500, 4500), Sign::kNone) << "a reserved SPI";
  EXPECT_EQ(of(hex("c3a5f01700000001", 120), 4501, 500), Sign::kNone);
}

TEST(DatagramSign, Dtls) {
  EXPECT_EQ(of(hex("16feff000000000000000000c0010000b400000000000000b4fefd", 205)), Sign::kSetup)
      << "ClientHello";
  EXPECT_EQ(of(hex("16feff00000000000000000023030000170000000000000017feff14", 48)), Sign::kSetup)
      << "its cookie";
  EXPECT_EQ(of(hex("14fefd000000000000000900010116fefd00010000000000000030c7", 75)), Sign::kSetup)
      << "the server's last word before data";
  EXPECT_EQ(of(hex("17fefd00010000000000010024a9337d1737403ce9827f7374d0b202", 49)),
            Sign::kOrdered);
  EXPECT_EQ(of(hex("17fefd00000000000000010050", 93)), Sign::kNone) << "data before there are keys";
  EXPECT_EQ(of(hex("17fefd00010000000000010051", 93)), Sign::kNone) << "longer than the datagram";
}

TEST(DatagramSign, CallsGamesAndQueriesSayNothing) {
  EXPECT_EQ(of(hex("8000000100000000deadbeef", 172)), Sign::kNone) << "RTP";
  EXPECT_EQ(of(hex("90e0000100000000deadbeef", 1200)), Sign::kNone) << "RTP video";
  EXPECT_EQ(of(hex("80c80006deadbeef", 28)), Sign::kNone) << "RTCP";
  EXPECT_EQ(of(hex("000100002112a442", 20), 50000, 3478), Sign::kNone) << "STUN";
  EXPECT_EQ(of(hex("c00001000001000000000000", 40), 50000, 53), Sign::kNone) << "DNS";
  EXPECT_EQ(of({}), Sign::kNone);
  EXPECT_EQ(signOf(test::v4({.protocol = ip::kIcmp}, hex("0800", 64))), Sign::kNone);
}

TEST(DatagramSign, ExpeditedPacketsAreTimelyWhateverTheyAre) {
  Bytes initial = hex("c000000001088394c8f03e5157080000449e", 1200);
  EXPECT_EQ(signOf(test::v4({.tos = 46 << 2}, test::udp(1, 443, initial))), Sign::kTimely);
  EXPECT_EQ(signOf(test::v6({.trafficClass = 44 << 2}, test::udp(1, 443, initial))), Sign::kTimely);
}

// For any input, nothing beyond the packet is read (the sanitizers check this).
TEST(DatagramSign, AnyBeginningOfAnyPacketIsSafe) {
  for (std::string_view head : {"c000000001148394c8f0", "38813814621d67462d",
                                "40813814621d67462d01", "50813814621d67462d0f000001",
                                "17fefd0001000000000001", "04000000", "00000000", "5453f09f92ac"}) {
    for (size_t size = 0; size <= 120; ++size) {
      Bytes payload = hex(head, 120);
      payload.resize(size);
      of(payload, 40000, size % 2 ? 443 : 4500);
    }
  }
}

}  // namespace
}  // namespace braid::datagram_sign_test
