#include "simnet/tcp/corrective.h"

#include <algorithm>
#include <utility>

#include "inet/ip.h"

namespace braid::sim::tcp {

namespace {
constexpr uint8_t kExperiment = 254;        // RFC 4727 section 4.3
constexpr uint16_t kExperimentId = 0x4272;  // ExID (RFC 6994 section 3), chosen by this project
}  // namespace

void CodedBins::onSent(Range bytes, Duration srtt) {
  srtt_ = srtt;
  if (segments_ == 0) {
    open_.begin = bytes.begin;
    closesAt_ = timeline_.now() + fromSeconds(toSeconds(srtt) * bin_);
  }
  open_.end = bytes.end;
  if (++segments_ == kMaxSegments) close();
  setAlarm();
}

void CodedBins::close() {
  waiting_.pushBack({open_, timeline_.now() + srtt_ / kWaitsPerRtt});
  segments_ = 0;
  closesAt_ = kNever;
}

void CodedBins::setAlarm() {
  Time due = waiting_.empty() ? kNever : waiting_.front().due;
  alarm_.set(std::min(due, closesAt_));
}

void CodedBins::onAlarm() {
  if (closesAt_ <= timeline_.now()) close();
  while (!waiting_.empty() && waiting_.front().due <= timeline_.now()) {
    Range block = waiting_.front().bytes;
    waiting_.popFront();
    send_(block);
  }
  setAlarm();
}

Bytes CodingOption::write() const {
  Bytes b(value ? kSize : 4);
  b[0] = kExperiment;
  b[1] = static_cast<uint8_t>(b.size());
  store16(&b[2], kExperimentId);
  if (value) store32(&b[4], *value);
  return b;
}

std::optional<CodingOption> CodingOption::read(ByteView packet, const InnerPacket& ip) {
  ByteView options = packet.subspan(ip.l4Offset, ip.tcp->headerLength).subspan(ip::kTcpHeader);
  std::optional<CodingOption> found;
  forEachTcpOption(options, [&](uint8_t kind, size_t offset, size_t length) {
    if (kind != kExperiment || length < 2 || load16(&options[offset]) != kExperimentId) return;
    found.emplace();
    if (length == 6) found->value = load32(&options[offset + 2]);
  });
  return found;
}

void xorContent(uint64_t seed, Range block, ByteSpan sum) {
  Bytes piece(sum.size());
  for (uint64_t at = block.begin; at < block.end; at += sum.size()) {
    size_t size = std::min<uint64_t>(sum.size(), block.end - at);
    fillContent(seed, at, ByteSpan(piece).first(size));
    for (size_t i = 0; i < size; ++i) sum[i] ^= piece[i];
  }
}

}  // namespace braid::sim::tcp
