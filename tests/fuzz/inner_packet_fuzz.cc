// Runs everything that reads or changes inner packets on the same bytes. src/inet must not access
// other bytes, and a valid packet must still be valid after a change. The last two bytes of the
// input choose the MTU.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/packet.h"
#include "inet/frame.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"
#include "inet/segmentation.h"
#include "inet/tcp.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;

bool headerValid(ByteView b, const InnerPacket& p) {
  return p.isV4() && foldSum(sumBytes(b.first(p.l4Offset))) == 0xffff;
}

bool transportValid(ByteView b, const InnerPacket& p) {
  ByteView segment = b.subspan(p.l4Offset, p.l4Length);
  return foldSum(sumBytes(segment, pseudoHeaderSum(p.src, p.dst, p.protocol, p.l4Length))) ==
         0xffff;
}

void checkParsed(ByteView b, const InnerPacket& p) {
  CHECK(p.isV4() != p.isV6());
  CHECK(p.size <= b.size());
  CHECK(p.l4Offset + p.l4Length == p.size);
  CHECK(p.l4Offset >= (p.isV4() ? ip::kV4Header : ip::kV6Header));
  CHECK(p.payloadLength <= p.l4Length);
  CHECK(p.isFragment || !p.isFirstFragment);
  CHECK(!(p.isLaterFragment() && p.hasPorts));
  CHECK(p.hasPorts || (p.sport == 0 && p.dport == 0));
  if (p.tcp) {
    CHECK(p.hasPorts && !p.isFragment && p.protocol == ip::kTcp);
    CHECK(p.tcp->headerLength >= ip::kTcpHeader);
    CHECK(p.tcp->headerLength + p.tcp->payloadLength == p.l4Length);
  }
  FlowKey key = p.flowKey();
  CHECK(key.reversed().reversed() == key);
  CHECK(FlowKeyHash(1, 2)(key) == FlowKeyHash(1, 2)(key));
  CHECK(!key.toString().empty());
}

void checkFrame(ByteView b) {
  auto frame = parseFrame(b);
  if (!frame) return;
  CHECK(frame->payloadOffset <= b.size());
  CHECK(frame->vlanTags <= Frame::kMaxVlanTags);
  CHECK(!frame->isBroadcast || frame->isMulticast);
  CHECK(!(frame->ip && frame->arp));
  if (frame->ip) checkParsed(b.subspan(frame->payloadOffset), *frame->ip);
}

void checkMarkCe(std::vector<uint8_t> b) {
  auto before = parseInnerPacket(b);
  bool valid = before && headerValid(b, *before);
  auto ecn = readEcn(b);
  bool marked = markCe(b);
  CHECK(marked == (ecn && *ecn != Ecn::kNotEct));
  CHECK(readEcn(b) == (marked ? Ecn::kCe : ecn));
  if (!before) return;
  auto after = parseInnerPacket(b);
  CHECK(after && after->flowKey() == before->flowKey() && after->dscp == before->dscp);
  CHECK(!before->isV4() || headerValid(b, *after) == valid);
}

void checkClampMss(std::vector<uint8_t> b, uint16_t mtu) {
  const std::vector<uint8_t> original = b;
  auto before = parseInnerPacket(b);
  bool valid = before && transportValid(b, *before);
  bool changed = clampMss(b, mtu);
  CHECK(changed == (b != original));
  if (!changed) return;
  CHECK(before && before->tcp && before->tcp->isSyn());
  CHECK(transportValid(b, *before) == valid);
  CHECK(!clampMss(b, mtu));
}

/// An answer must be a well-formed packet within the limits, and must itself never be answered.
void checkAnswer(PacketPool& pool, ByteView offender, const Packet& answer) {
  if (!answer) return;
  auto p = parseInnerPacket(answer.view());
  CHECK(p && p->size == answer.size());
  CHECK(p->size <= (p->isV4() ? 576 : 1280));
  CHECK(p->dst == parseInnerPacket(offender)->src && p->src == parseInnerPacket(offender)->dst);
  CHECK(!p->isV4() || headerValid(answer.view(), *p));
  CHECK(p->isV6() ? transportValid(answer.view(), *p)
                  : foldSum(sumBytes(answer.view().subspan(p->l4Offset))) == 0xffff);
  CHECK(!buildTooBig(pool, answer.view(), 1280));
}

void checkIcmp(PacketPool& pool, ByteView b, uint16_t mtu) {
  checkAnswer(pool, b, buildTooBig(pool, b, mtu));
  checkAnswer(pool, b, buildUnreachable(pool, b, static_cast<Unreachable>(mtu % 3)));
}

/// What refuses a connection is a well-formed packet that begins none itself, and refuses none.
void checkConnect(PacketPool& pool, ByteView b) {
  CHECK(!unreachableTcp(b) || parseInnerPacket(b));
  auto p = parseInnerPacket(b);
  Packet refusal = buildTcpRefusal(pool, b);
  CHECK(static_cast<bool>(refusal) == (p && p->tcp));
  CHECK(!isTcpConnect(b) || !p || !p->tcp || p->tcp->isSyn());
  if (!refusal) return;
  auto answer = parseInnerPacket(refusal.view());
  CHECK(answer && answer->tcp && answer->src == p->dst && answer->dst == p->src);
  CHECK(transportValid(refusal.view(), *answer) && !isTcpConnect(refusal.view()));
}

void checkFragments(PacketPool& pool, ByteView b, uint16_t mtu) {
  auto whole = parseInnerPacket(b);
  size_t payload = 0;
  FragmentResult result = fragmentIpv4(pool, b, mtu, [&](Packet fragment) {
    auto p = parseInnerPacket(fragment.view());
    CHECK(p && p->size == fragment.size() && p->size <= mtu);
    CHECK(headerValid(fragment.view(), *p) == headerValid(b, *whole));
    CHECK(p->src == whole->src && p->dst == whole->dst && p->protocol == whole->protocol);
    CHECK(std::equal(fragment.view().begin() + p->l4Offset, fragment.view().end(),
                     b.begin() + whole->l4Offset + static_cast<ptrdiff_t>(payload)));
    payload += p->l4Length;
  });
  CHECK(result == FragmentResult::kDone ? payload == whole->l4Length : payload == 0);
}

/// Split packets must fit their buffer and have the stated number. A run that may be written at
/// once must have the bytes of all its packets.
void checkOffloads(ByteView b, size_t payload) {
  for (size_t linkHeader : {0, 14}) {
    if (auto segments = PacketSegmenter::of(b, linkHeader, payload)) {
      size_t count = 0;
      for (size_t size; (size = segments->nextSize()) > 0; ++count) {
        std::vector<uint8_t> room(size);
        segments->write(room.data());
        auto p = parseInnerPacket(ByteView(room).subspan(linkHeader));
        CHECK(p && p->size == size - linkHeader);
      }
      CHECK(count == segments->count() && count <= PacketSegmenter::kMost);
    }
    runNumber(b, linkHeader);
    std::vector<uint8_t> first(b.begin(), b.end());
    PacketRun run(linkHeader);
    run.setTakesUdp(true);
    if (!run.begin(first)) continue;
    while (run.count() < 3 && run.extend(b)) {
    }
    if (run.count() < 2) continue;
    RunOffload offload = run.finish(first);
    CHECK(offload.headers + offload.payload <= first.size());
    CHECK(offload.checksumStart + offload.checksumOffset + 2u <= first.size());
  }
}

/// Options of a TCP header, at the begin of the bytes.
void checkTcpOptions(ByteView b) {
  const TcpOptionFields fields = parseTcpOptions(b.first(std::min<size_t>(b.size(), 40)));
  CHECK(fields.sackCount <= TcpOptionFields::kMaxSacks);
  CHECK(!fields.windowShift || *fields.windowShift <= 14);  // RFC 7323 section 2.3
}

/// What a router says about a flow: it must be sent to the flow's source.
void checkRouterError(ByteView b) {
  auto p = parseInnerPacket(b);
  if (!p) return;
  if (std::optional<FlowKey> flow = flowOfRouterError(b, *p)) CHECK(flow->source() == p->dst);
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  // A copy of the exact size, so that the sanitizer detects an access to the first byte beyond.
  const std::vector<uint8_t> bytes(data, data + size);
  auto mtu = static_cast<uint16_t>(size < 2 ? 1500 : load16(&bytes[size - 2]) % 1600);
  PacketPool pool(1600, 64);
  if (auto p = parseInnerPacket(bytes)) checkParsed(bytes, *p);
  checkTcpOptions(bytes);
  checkRouterError(bytes);
  checkFrame(bytes);
  checkMarkCe(bytes);
  checkClampMss(bytes, mtu);
  checkIcmp(pool, bytes, mtu);
  checkConnect(pool, bytes);
  checkFragments(pool, bytes, mtu);
  checkOffloads(bytes, mtu);
}
