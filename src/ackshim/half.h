#pragma once

#include <algorithm>
#include <cstdint>

#include "ackshim/leg_rtt.h"
#include "ackshim/segment.h"
#include "ackshim/stamp.h"

namespace braid {

/// One direction of a connection's data as a gateway sees it: the data that pass, and the ACKs that come
/// back. What is measured between the two is the round trip beyond this gateway: of the whole rest of the
/// path for data of the local host, of the local leg alone for data to it.
struct Half {
  /// Bytes that windows may be wrong by: ACKs that passed elsewhere or were lost behind this gateway.
  static constexpr uint32_t kSlack = 65536;
  /// A window shift that is not known: the largest (RFC 7323 section 2.3).
  static constexpr uint8_t kUnknownShift = 14;
  static constexpr uint32_t kMostSaid = UINT8_MAX;  ///< of `said`

  enum class Data : uint8_t {
    kNone,   ///< no data, or all of it acknowledged before: keepalives, late duplicates
    kNew,    ///< above all that was seen
    kAgain,  ///< seen before, or a hole filled
  };
  enum class Ack : uint8_t {
    kNone,       ///< no ACK, an old one, a window update, or with data and nothing new
    kNew,        ///< acknowledges more than any before
    kDuplicate,  ///< RFC 5681 section 2
  };

  Seq una;   ///< the highest ACK
  Seq nxt;   ///< behind the highest byte seen
  Seq base;  ///< where the burst begins, of which the size counts
  LegRtt rtt;
  Seq timedEnd;  ///< the segment whose ACK gives the next sample
  uint32_t timedTs = 0;
  Stamp timedAt;
  Stamp ackAt;     ///< the last new ACK, or when data were sent with nothing outstanding, if that is later
  Stamp activeAt;  ///< the last data
  uint16_t window = 0;  ///< of the last ACK, unscaled
  uint8_t shift = kUnknownShift;
  uint8_t dupAcks = 0;   ///< since the last new ACK
  uint8_t hopLimit = 0;  ///< of the last ACK
  uint8_t dscp = 0;      ///< of the last ACK
  uint8_t said = 0;      ///< bytes that the data's receiver sent since all was acknowledged; 255: or more
  bool known : 1 = false;
  bool hasWindow : 1 = false;
  bool timing : 1 = false;
  bool timestamps : 1 = false;  ///< the last segment carried them
  bool large : 1 = false;       ///< the burst
  bool fin : 1 = false;
  bool offersSack : 1 = false;   ///< the SYN of the data's sender
  bool offersShift : 1 = false;  ///< the same

  bool isOutstanding() const { return una < nxt; }
  bool isFinished() const { return fin && una == nxt; }
  uint32_t reach() const { return (uint32_t{window} << shift) + kSlack; }
  /// The segment's sequence numbers are such as its sender may use now.
  bool mayCarry(const TcpSegment& s) const {
    auto reachable = static_cast<int32_t>(reach());
    return s.seq - una >= -reachable && s.end - una <= reachable;
  }
  /// The ACK is of something that was sent, and not too old (RFC 5961 section 5.2).
  bool mayAcknowledge(Seq ack) const { return ack <= nxt && ack - una >= -static_cast<int32_t>(reach()); }

  /// The first segment of this half that was seen: a SYN, or one of a connection joined in its middle.
  void begin(const TcpSegment& s, Stamp now);
  /// Joined in the middle: the other side's segment says where this half stands.
  void beginAt(Seq ack, Stamp now);
  /// As a segment finds it.
  struct Before {
    Seq nxt;
    bool wasIdle;  ///< nothing was outstanding
    bool begins;   ///< data begin a burst here
  };
  /// A burst is what is sent between two pauses of the sender's own. One begins after `inactivity` without data
  /// (Algorithm 1 lines 8-11, Algorithm 2 line 20); and where all is acknowledged, with an answer to what the
  /// receiver said then, or when nothing came for longer than a sender waits for ACKs. `back`: the data in the
  /// other direction, which `s` acknowledges.
  Before before(const TcpSegment& s, const Half& back, Duration inactivity, Stamp now) const;
  /// A segment of the data's sender, one that mayCarry().
  Data onData(const TcpSegment& s, const Before& before, Stamp now);
  /// The data's receiver sent so many new bytes itself; after onAck() of the same segment.
  void onSaid(uint32_t bytes) {
    if (!isOutstanding()) said = static_cast<uint8_t>(std::min(said + std::min(bytes, kMostSaid), kMostSaid));
  }
  /// A segment of the data's receiver, whose ACK mayAcknowledge(). `expected`: the number that follows all
  /// the receiver itself has sent; a keepalive is below it.
  Ack onAck(const TcpSegment& s, Seq expected, uint32_t gamma, Stamp now);

 private:
  bool isAnswer(const TcpSegment& s, const Half& back) const;
  Duration quiet(const Half& back, Duration inactivity) const;
  void time(const TcpSegment& s, Stamp now);
  void sample(const TcpSegment& s, Stamp now);
};

}  // namespace braid
