// One end of the stream lane, between a peer that sends anything and a driver that calls anything.
// Checks that the bytes read at each offset are those sent there, that the limits hold, and that no
// memory is held at the end.

#include <array>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/wire/frame_table.h"

namespace {

using namespace braid;

constexpr size_t kHeld = 40000;
constexpr size_t kUnits = 64;

uint8_t byteAt(uint64_t stream, uint64_t offset) {
  return static_cast<uint8_t>((stream * 31 + offset) * 2654435761u >> 9);
}

class Play {
 public:
  Play() {
    options_.on = true;
    options_.most = 12;
    options_.firstUpload = 9000;
    options_.firstCredit = 12000;
    options_.mostCredit = 50000;
    options_.heldBytes = kHeld;
    lane_ = std::make_unique<SessionStreams>(StreamContext{options_, pool_, dataTracker_, trace_,
                                                           rations_, &registry_, nullptr, 1, true},
                                             round_);
    Params peer;
    peer.lanes = Params::kPacketLane | Params::kStreamLane;
    peer.streams = 10;
    peer.streamCredit = 5000;
    lane_->setPeerParams(peer);
  }
  ~Play() {
    for (UnitRef unit : sent_) dataTracker_.release(unit);
    sent_.clear();
    lane_->endAll(StreamCause::kGone, false);
    lane_.reset();
    CHECK(pool_.inUse() == 0);
    CHECK(dataTracker_.records() == 0);
    for (PacketUse use : {PacketUse::kHeld, PacketUse::kSent, PacketUse::kQueued})
      CHECK(pool_.quota(use).used() == 0);
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  bool step(Reader& in) {
    uint8_t what = in.u8();
    if (!in.ok()) return false;
    now_ += 1ms;
    switch (what % 12) {
      case 0:
      case 1:
        frame(in);
        break;
      case 2:
        lane_->onCredit({StreamId(in.u8()), in.varint()});
        break;
      case 3:
        lane_->onReset({StreamId(in.u8()), in.varint()}, now_);
        break;
      case 4:
        if (StreamHandle h = lane_->open(ends(in.u8()), now_)) handles_.push_back(h);
        break;
      case 5:
        write(in);
        break;
      case 6:
        if (Stream* s = chosen(in)) lane_->sendSide().finish(*s, now_);
        break;
      case 7:
        if (Stream* s = chosen(in))
          lane_->reset(*s, static_cast<StreamCause>(in.u8() % kStreamCauses), now_);
        break;
      case 8:
        read(in);
        break;
      case 9:
        send(in);
        break;
      case 10:
        fate(in);
        break;
      default:
        lane_->setPaths(900 + in.u8() * 2u, in.u8() * 10000.0, in.u8() * 1ms);
        raw(in);
    }
    lane_->update(now_);
    look();
    return true;
  }

 private:
  static StreamEnds ends(uint8_t n) {
    std::array<uint8_t, 4> address{10, 0, 0, n};
    return {{Address::v4(address), n}, {Address::v4(address), 443}};
  }
  Stream* chosen(Reader& in) {
    uint8_t n = in.u8();
    return handles_.empty() ? nullptr : registry_.find(handles_[n % handles_.size()]);
  }
  void frame(Reader& in) {
    StreamFrame f;
    f.type = StreamFrame::kFirst + in.u8() % 4;
    f.stream = StreamId(in.u8());
    f.offset = in.u16();
    size_t size = in.u16() % 1500;
    if (f.type & StreamFrame::kOpen) f.opening = StreamOpening{ends(in.u8()), in.u16()};
    if (size == 0 && f.type == StreamFrame::kFirst) size = 1;
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = byteAt(f.stream.value(), f.offset + i);
    f.bytes = bytes;
    Packet packet = pool_.copy(bytes);
    if (packet && lane_->admit(f, now_) == SessionStreams::Verdict::kTaken)
      lane_->onFrame(f, std::move(packet), now_);
    CHECK(lane_->heldBytes() <= kHeld);
  }
  // The lane must handle every frame that the frame parser accepts.
  void raw(Reader& in) {
    ByteView bytes = in.take(std::min<size_t>(in.u8(), in.remaining()));
    FrameReader frames(bytes);
    while (std::optional<WireFrame> frame = frames.next()) {
      const auto* f = std::get_if<StreamFrame>(&*frame);
      if (!f) continue;
      CHECK(f->end() < StreamFrame::kEnd);
      Packet unit = pool_.copy(f->payload), rest = pool_.allocate();
      if (!unit || !rest) return;
      size_t size = unit.size() / 2;
      size_t stays = cutStreamUnit(f->type, unit, size, rest);
      if (stays > 0) CHECK(unit.size() == size && stays < f->bytes.size());
    }
  }
  void write(Reader& in) {
    Stream* s = chosen(in);
    std::vector<uint8_t> bytes(in.u16() % 5000);
    if (!s) return;
    uint64_t end = s->source().end();
    if (in.u8() % 2 == 0) {
      size_t may = lane_->sendSide().writable(*s, bytes.size());
      size_t taken = lane_->sendSide().write(*s, bytes, now_);
      CHECK(taken <= may && s->source().end() == end + taken);
      return;
    }
    std::array<ByteSpan, 4> buffers;
    size_t n = lane_->sendSide().room(*s, buffers), room = 0;
    for (size_t i = 0; i < n; ++i) room += buffers[i].size();
    size_t taken = std::min(room, bytes.size());
    lane_->sendSide().commit(*s, taken, now_);
    CHECK(s->source().end() == end + taken);
  }
  void read(Reader& in) {
    Stream* s = chosen(in);
    size_t most = in.u16();
    if (!s) return;
    std::array<ByteView, 8> views;
    size_t n = s->assembly().peek(views), taken = 0;
    uint64_t at = s->assembly().consumed();
    for (size_t i = 0; i < n; ++i)
      for (uint8_t byte : views[i].first(std::min(views[i].size(), most - taken)))
        CHECK(byte == byteAt(s->id().value(), at + taken++));
    CHECK(taken <= s->assembly().readable());
    lane_->consume(*s, taken, now_);
  }
  // The next data unit is sent.
  void send(Reader& in) {
    DrrCursor walk(round_);
    Candidate offer = walk.peek(now_);
    if (!offer.unit || sent_.size() >= kUnits) return;
    if (size_t size = 70 + in.u16() % 2000; size < offer.unit->size())
      offer.flow->lane().cut(*offer.flow, size);
    Flow& flow = *offer.flow;
    UnitRef unit = dataTracker_.create(flow, walk.take(), now_);
    dataTracker_.onSent(unit, SubflowId(0), PacketNumber(next_++));
    check(*unit);
    sent_.push_back(unit);
  }
  static void check(const DataUnit& unit) {
    StreamFrame f;
    f.type = unit.frame;
    f.offset = unit.dsn.value();
    CHECK(readStreamUnit(unit.packet.view(), f));
  }
  // A datagram arrives, or it is lost and its data is resent.
  void fate(Reader& in) {
    if (sent_.empty()) return;
    size_t at = in.u8() % sent_.size();
    UnitRef unit = sent_[at];
    sent_.erase(sent_.begin() + static_cast<ptrdiff_t>(at));
    if (in.u8() % 2 == 0) {
      dataTracker_.onDelivered(unit, true);
    } else {
      dataTracker_.onLost(unit, now_);
    }
    dataTracker_.release(unit);
    UnitRef repair = dataTracker_.nextRepair(now_);
    if (!repair) return;
    dataTracker_.cut(repair, 70 + in.u16() % 2000, pool_);
    dataTracker_.onSent(repair, SubflowId(0), PacketNumber(next_++));
    check(*repair);
    sent_.push_back(repair);
  }
  void look() {
    StreamEvent event;
    for (size_t n = 0; registry_.poll(event); ++n) {
      CHECK(n < 10000);
      if (event.opened) handles_.push_back(event.stream);
      CHECK(!(event.done && event.reset));
      CHECK((registry_.find(event.stream) == nullptr) == (event.done || event.reset));
    }
    StreamCreditFrame credit;
    while (lane_->pollCredit(credit)) CHECK(credit.limit < StreamFrame::kEnd);
    StreamResetFrame reset;
    while (lane_->pollReset(reset)) CHECK(reset.code < kStreamCauses);
    registry_.takeTouched([](uint32_t session) { CHECK(session == 1); });
    CHECK(lane_->size() <= options_.most);
  }

  PacketPool pool_{2048, 512};
  StreamOptions options_;
  StreamRegistry registry_;
  DataTracker dataTracker_{3s, nullptr, &pool_.quota(PacketUse::kSent)};
  DrrScheduler round_;
  TraceSink* noSink_ = nullptr;
  RecoveryTrace trace_{noSink_, 1};
  StreamRateLimits rations_;
  std::unique_ptr<SessionStreams> lane_;
  std::vector<StreamHandle> handles_;
  std::vector<UnitRef> sent_;
  uint64_t next_ = 0;
  Time now_{1s};
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  Reader in({data, size});
  Play play;
  for (size_t steps = 0; steps < 4000 && play.step(in); ++steps) {
  }
}
