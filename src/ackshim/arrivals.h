#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ackshim/stamp.h"
#include "inet/sequence.h"

namespace braid {

/// What of a local sender's data came to the gateway: all before `edge`, then a hole, then up to two ranges.
/// Bounded: ranges beyond these are not remembered, so they look missing.
struct Arrivals {
  static constexpr size_t kMaxAhead = 2;

  Seq edge;
  std::array<SeqRange, kMaxAhead> ahead{};  ///< ascending; empty ones last
  Stamp since;                              ///< when the hole at `edge` was seen

  bool hasHole() const { return !ahead[0].empty(); }

  void restart(Seq at) { *this = {at, {}, {}}; }

  void onArrive(SeqRange r, Stamp now) {
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
    if (had) since = now;  // another hole now, if any
  }

  /// What came is lost after all: the tunnel dropped it. There is nothing to wait for.
  void onLost(SeqRange r, Stamp seen) {
    if (r.begin < edge) {
      SeqRange rest{r.end, edge};
      if (rest.end > rest.begin) ahead = {rest, ahead[0]};
      edge = r.begin;
      since = seen;
    }
    cut(r);
  }

 private:
  // The lowest ranges stay.
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

}  // namespace braid
