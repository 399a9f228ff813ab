#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ackshim/segment.h"
#include "base/time.h"
#include "inet/tcp.h"

namespace braid {

/// Smoothed round-trip time and its variation in 8 bytes (RFC 6298 section 2; gains 1/8 and 1/4).
class LegRtt {
 public:
  void onSample(Duration sample) {
    auto us = static_cast<uint32_t>(std::clamp<int64_t>(sample / 1us, 1, kMax));
    if (srtt_ == 0) {
      srtt_ = us;
      variation_ = us / 2;
      return;
    }
    uint32_t error = us > srtt_ ? us - srtt_ : srtt_ - us;
    variation_ = (3 * variation_ + error) / 4;
    srtt_ = std::max(1u, (7 * srtt_ + us) / 8);
  }
  bool hasSample() const { return srtt_ != 0; }
  /// The smoothed RTT; 0 before the first sample.
  Duration smoothed() const { return 1us * srtt_; }
  Duration variation() const { return 1us * variation_; }
  /// How long an answer may take: srtt + 4 * variation (RFC 6298 section 2.3), at least twice the
  /// RTT.
  Duration patience() const { return 1us * std::max(srtt_ + 4 * variation_, 2 * srtt_); }

 private:
  static constexpr int64_t kMax = 60'000'000;  // one minute; keeps the sums from overflowing
  uint32_t srtt_ = 0;
  uint32_t variation_ = 0;
};

/// Which data of a local sender arrived at the gateway: everything before `edge`, then a hole, then
/// up to kMaxAhead ranges. Further ranges are not remembered, so they count as missing.
struct Arrivals {
  static constexpr size_t kMaxAhead = 2;

  Seq edge;
  std::array<SeqRange, kMaxAhead> ahead{};  ///< ascending; unused entries are empty and last
  Timestamp32 since;                        ///< when the hole at `edge` was seen

  bool hasHole() const { return !ahead[0].empty(); }

  void restart(Seq at) { *this = {at, {}, {}}; }

  void onArrive(SeqRange r, Timestamp32 now) {
    if (r.end <= edge) return;
    if (r.begin > edge) {
      if (!hasHole()) since = now;
      return insert(r);
    }
    edge = r.end;
    bool had = hasHole();
    while (hasHole() && ahead[0].begin <= edge) {
      if (ahead[0].end > edge) edge = ahead[0].end;
      ahead = {ahead[1], {}};
    }
    if (had) since = now;  // if there is a hole, it is another one
  }

  /// Data that arrived is lost after all, because the tunnel dropped it. `seen`: the time of the
  /// new hole; the caller sets it in the past, as no reordering need be waited for.
  void onLost(SeqRange r, Timestamp32 seen) {
    if (r.begin < edge) {
      SeqRange rest{r.end, edge};
      if (rest.end > rest.begin) ahead = {rest, ahead[0]};
      edge = r.begin;
      since = seen;
    }
    cut(r);
  }

 private:
  // Removes r from the ranges. If more than kMaxAhead remain, the lowest are kept.
  void cut(SeqRange r) {
    std::array<SeqRange, 2 * kMaxAhead> rest{};
    size_t count = 0;
    for (const SeqRange& a : ahead) {
      SeqRange below{a.begin, r.begin < a.end ? r.begin : a.end};
      SeqRange above{r.end > a.begin ? r.end : a.begin, a.end};
      if (below.begin < below.end) rest[count++] = below;
      if (above.begin < above.end) rest[count++] = above;
    }
    std::copy_n(rest.begin(), kMaxAhead, ahead.begin());
  }
  void insert(SeqRange r) {
    for (SeqRange& a : ahead) {
      if (a.empty()) {
        a = r;
        return;
      }
      if (r.end < a.begin) {
        if (&a == &ahead[0]) ahead = {r, ahead[0]};
        return;
      }
      if (r.begin <= a.end) {
        if (r.begin < a.begin) a.begin = r.begin;
        if (r.end > a.end) a.end = r.end;
        if (&a == &ahead[0] && !ahead[1].empty() && ahead[1].begin <= a.end) {
          if (ahead[1].end > a.end) a.end = ahead[1].end;
          ahead[1] = {};
        }
        return;
      }
    }
  }
};

/// Remembers where the last kKept segments of a sender begin, because senders ignore SACK blocks
/// that do not lie on segment boundaries. Stored as lengths, newest first, counted back from the
/// highest byte sent.
class Boundaries {
 public:
  static constexpr size_t kKept = 3;

  void clear() { lengths_ = {}; }
  /// Adds a segment of `length` > 0 bytes. `contiguous`: it begins where the last one ended.
  void push(uint32_t length, bool contiguous) {
    if (!contiguous || length > UINT16_MAX) clear();
    if (length > UINT16_MAX) return;
    std::copy_backward(lengths_.begin(), lengths_.end() - 1, lengths_.end());
    lengths_[0] = static_cast<uint16_t>(length);
  }
  /// The beginning of the newest segment, which ends at `nxt`.
  std::optional<Seq> lastBegin(Seq nxt) const {
    if (lengths_[0] == 0) return std::nullopt;
    return Seq{nxt.value - lengths_[0]};
  }
  /// The beginning of the second unacknowledged segment, that is, of the one after the segment that
  /// begins at `una`; nullopt unless both are remembered.
  std::optional<Seq> secondBegin(Seq una, Seq nxt) const {
    Seq at = nxt;
    for (uint16_t length : lengths_) {
      if (length == 0) break;
      Seq begin{at.value - length};
      if (begin == una) return at == nxt ? std::nullopt : std::optional(at);
      at = begin;
    }
    return std::nullopt;
  }

 private:
  std::array<uint16_t, kKept> lengths_{};  // 0: unused, and so are all entries after it
};

/// One direction of a TCP connection as a gateway sees it: the data that pass, and the ACKs that
/// come back for them. The time between data and ACK is the round trip beyond this gateway. For
/// data of the local host that is the whole rest of the path, for data to the local host it is the
/// local leg only.
struct TcpDirection {
  /// Bytes by which the known window may be wrong, because ACKs took another way or were lost after
  /// this gateway.
  static constexpr uint32_t kSlack = 65536;
  /// The window shift assumed when it is not known: the largest (RFC 7323 section 2.3).
  static constexpr uint8_t kUnknownShift = 14;
  static constexpr uint32_t kMostSaid = UINT8_MAX;  ///< the largest value of `said`

  enum class Data : uint8_t {
    kNone,   ///< no data, or only data acknowledged before: keepalives, late duplicates
    kNew,    ///< above the highest byte seen
    kAgain,  ///< seen before, or fills a hole
  };
  enum class Ack : uint8_t {
    kNone,       ///< no ACK, an old one, a window update, or an ACK that carries data and
                 ///< acknowledges nothing new
    kNew,        ///< acknowledges more than any before
    kDuplicate,  ///< a duplicate ACK (RFC 5681 section 2)
  };

  Seq una;   ///< the highest ACK
  Seq nxt;   ///< one after the highest byte seen
  Seq base;  ///< where the present burst begins (see before())
  LegRtt rtt;
  Seq timedEnd;  ///< end of the segment that is timed: its ACK gives the next RTT sample
  uint32_t timedTs = 0;
  Timestamp32 timedAt;
  /// Time of the last new ACK, or, if later, the time at which data were sent while nothing was
  /// outstanding.
  Timestamp32 ackAt;
  Timestamp32 activeAt;  ///< time of the last data
  uint16_t window = 0;   ///< of the last ACK, as it stands in the header
  uint8_t shift = kUnknownShift;
  uint8_t dupAcks = 0;         ///< since the last new ACK
  uint8_t hopLimit = 0;        ///< of the last ACK
  uint8_t dscp : 6 = 0;        ///< of the last ACK
  bool synWindow : 1 = false;  ///< `window` is of a SYN, so not scaled (RFC 7323 section 2.2)
  /// New bytes that the data's receiver sent itself since all was acknowledged; 255 means 255 or
  /// more.
  uint8_t said = 0;
  bool known : 1 = false;
  bool hasWindow : 1 = false;
  bool timing : 1 = false;
  bool timestamps : 1 = false;  ///< the timed segment carried them
  bool large : 1 = false;       ///< the burst is large: at least gamma bytes were acknowledged
  bool fin : 1 = false;
  bool offersSack : 1 = false;   ///< in the SYN of the data's sender
  bool offersShift : 1 = false;  ///< in the SYN of the data's sender

  bool isOutstanding() const { return una < nxt; }
  bool isFinished() const { return fin && una == nxt; }
  /// `window` as an ACK without SYN would say it. A window that is open stays so.
  uint16_t scaledWindow() const {
    if (!synWindow || window == 0) return window;
    return static_cast<uint16_t>(std::max(window >> shift, 1));
  }
  uint32_t reach() const { return (uint32_t{scaledWindow()} << shift) + kSlack; }
  /// Whether the segment's sequence numbers are within what its sender may use now.
  bool mayCarry(const TcpSegment& s) const {
    auto reachable = static_cast<int32_t>(reach());
    return s.seq - una >= -reachable && s.end - una <= reachable;
  }
  /// Whether the ACK is for something that was sent, and not too old (RFC 5961 section 5.2).
  bool mayAcknowledge(Seq ack) const {
    return ack <= nxt && ack - una >= -static_cast<int32_t>(reach());
  }

  /// Starts with the first segment of this direction that was seen: a SYN, or data of a connection
  /// joined in its middle.
  void begin(const TcpSegment& s, Timestamp32 now);
  /// Starts in the middle of a connection: the ACK of the other side's segment tells where this
  /// direction stands.
  void beginAt(Seq ack, Timestamp32 now);
  /// The state of the direction just before a segment.
  struct Before {
    Seq nxt;
    bool wasIdle;  ///< nothing was outstanding
    bool begins;   ///< a burst begins with this segment
  };
  /// Tells the state before `s`, and whether `s` begins a burst. A burst is what a sender sends
  /// between two pauses of its own. It begins with data after `inactivity` without any (Algorithm 1
  /// lines 8-11, Algorithm 2 line 20). When all is acknowledged, it also begins with data that
  /// answer something the receiver sent then, or with data after a pause that is longer than a
  /// sender waits for ACKs. `back`: the opposite direction, which `s` acknowledges.
  Before before(const TcpSegment& s, const TcpDirection& back, Duration inactivity,
                Timestamp32 now) const;
  /// Takes a segment of the data's sender for which mayCarry() is true.
  Data onData(const TcpSegment& s, const Before& before, Timestamp32 now);
  /// The data's receiver sent `bytes` new bytes itself. Call after onAck() for the same segment.
  void onSaid(uint32_t bytes) {
    if (!isOutstanding())
      said = static_cast<uint8_t>(std::min(said + std::min(bytes, kMostSaid), kMostSaid));
  }
  /// Takes a segment of the data's receiver for whose ACK mayAcknowledge() is true. `expected`: the
  /// number that follows all that the receiver itself has sent; a keepalive is below it. `gamma`:
  /// the number of acknowledged bytes that makes a burst large.
  Ack onAck(const TcpSegment& s, Seq expected, uint32_t gamma, Timestamp32 now);

 private:
  bool isAnswer(const TcpSegment& s, const TcpDirection& back) const;
  Duration quiet(const TcpDirection& back, Duration inactivity) const;
  void time(const TcpSegment& s, Timestamp32 now);
  void sample(const TcpSegment& s, Timestamp32 now);
};

}  // namespace braid
