#include "gateway/decode_time.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "coding/block_decoder.h"
#include "coding/block_encoder.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

constexpr size_t kRuns = 5;
// Numbers of losses that are measured on any machine. The first needs only XOR, the others
// arithmetic in GF(256).
constexpr size_t kAlways = 3;
// Time limit for measuring the others, so that a slow machine does not start much later. Most
// machines need some milliseconds in all.
constexpr Duration kBudget = 500ms;
constexpr uint8_t kSubflow = 0;

// The symbols of a block, its parities, and a decoder that loses some of the symbols in each run.
class Bench {
 public:
  Bench(size_t symbols, size_t parities, size_t size, const Clock& clock)
      : clock_(clock), symbols_(symbols), decoder_(options(symbols, size)) {
    BlockEncoder encoder(size);
    encoder.begin();
    for (size_t i = 0; i < symbols; ++i) {
      data_.emplace_back(size, static_cast<uint8_t>(i * 37 + 1));
      ByteView whole(data_.back());
      encoder.add({&whole, 1});
    }
    for (size_t i = 0; i < parities; ++i) {
      ByteView parity = encoder.parity(i);
      parities_.emplace_back(parity.begin(), parity.end());
    }
  }

  // Decodes one more block, of which the first `lost` symbols never arrive.
  Duration run(size_t lost) {
    BlockDescription block;
    block.block = next_++;
    block.parities = static_cast<uint8_t>(lost);
    block.symbolSize = static_cast<uint16_t>(data_.front().size());
    block.rangeCount = 1;
    block.ranges[0] = {kSubflow, pn_, static_cast<uint32_t>(symbols_)};
    for (size_t i = lost; i < symbols_; ++i) {
      ByteView whole(data_[i]);
      decoder_.onSymbol(kSubflow, pn_ + i, {&whole, 1}, Time{});
    }
    pn_ += symbols_;
    Time begin = clock_.now();
    for (size_t i = 0; i < lost; ++i) decoder_.onParity(block, i, parities_[i]);
    BlockDecoder::Restored restored;
    while (decoder_.poll(restored)) {
    }
    return clock_.now() - begin;
  }

 private:
  static DecoderOptions options(size_t symbols, size_t size) {
    DecoderOptions out;
    out.symbolCapacity = size;
    out.packets = 2 * symbols;
    return out;
  }

  const Clock& clock_;
  size_t symbols_;
  std::vector<std::vector<uint8_t>> data_, parities_;
  BlockDecoder decoder_;
  uint16_t next_ = 0;
  uint64_t pn_ = 0;
};

Duration median(std::array<Duration, kRuns> times) {
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

}  // namespace

decltype(RecoveryOptions::decodeTime) measureDecodeTimes(size_t kMax, size_t mMax,
                                                         size_t symbolSize, const Clock& clock) {
  decltype(RecoveryOptions::decodeTime) out{};
  mMax = std::min(mMax, out.size());
  Bench bench(kMax, std::min(mMax, kMax), symbolSize, clock);
  bench.run(1);  // not measured: it sets up tables and allocates memory
  const Time end = clock.now() + kBudget;
  Duration longest{1}, step{};
  for (size_t m = 1; m <= mMax; ++m) {
    if (m > kAlways && clock.now() >= end) {
      // Each further loss takes as much arithmetic as the one before.
      if (m <= kMax) longest += step;
    } else {
      std::array<Duration, kRuns> times;
      for (Duration& time : times) time = bench.run(std::min(m, kMax));
      const Duration before = longest;
      longest = std::max(longest, median(times));
      step = longest - before;
    }
    out[m - 1] = longest;
  }
  return out;
}

Config withDecodeTimes(Config config, const Clock& clock) {
  TunnelOptions& tunnel = config.tunnel;
  RecoveryOptions& options = tunnel.recoveryOptions;
  size_t size = tunnel.outerMtu ? tunnel.outerMtu : tunnel.maxOuterMtu;
  options.decodeTime = measureDecodeTimes(options.kMax, options.decodeTime.size(), size, clock);
  spdlog::info("restoring lost packets of a block of {} takes: {}", options.kMax,
               decodeTimesText(options));
  return config;
}

std::string decodeTimesText(const RecoveryOptions& options) {
  std::string text;
  for (size_t m = 1; m <= std::min(options.mMax, options.decodeTime.size()); ++m) {
    auto whole = std::chrono::round<std::chrono::microseconds>(options.decodeTime[m - 1]);
    text += (text.empty() ? "" : ", ") + std::to_string(m) + ": " + durationText(whole);
  }
  return text;
}

}  // namespace braid
