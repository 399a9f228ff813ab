#include "ctl/verbs/load_test.h"

#include <algorithm>
#include <cmath>

#include "ctl/views/fields.h"
#include "ctl/views/format.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

namespace {
constexpr double kStart =
    0.3;  // share of the test in which the congestion control may still be finding the rate

double known(double ms) {
  return std::isfinite(ms) ? ms : 0;
}
}  // namespace

LoadSample loadSample(const nlohmann::json& answer, const std::string& path,
                      const std::vector<std::string>& left, double at) {
  LoadSample out;
  out.at = at;
  for (const auto& s : listOf(answer, "subflows")) {
    std::string name = textOf(s, kKeyOf<&SubflowStatus::uplink>);
    if (name == "-") name = textOf(s, kKeyOf<&SubflowStatus::remote>);
    bool isMeant =
        path.empty() ? std::find(left.begin(), left.end(), name) == left.end() : name == path;
    if (!isMeant) continue;
    out.delivered += countOf(s, kKeyOf<&SubflowStatus::deliveredBytes>);
    out.sentBytes += countOf(s, kKeyOf<&SendCounts::sentBytes>);
    out.sentPackets += countOf(s, kKeyOf<&SendCounts::sentPackets>);
    uint64_t lost = countOf(s, kKeyOf<&SendCounts::lostPackets>);
    out.lostPackets += lost - std::min(lost, countOf(s, kKeyOf<&SendCounts::spuriousLosses>));
    out.srttMs = std::max(out.srttMs, known(numberOf(s, kKeyOf<&SubflowStatus::srtt>)));
    out.leastRttMs = std::max(out.leastRttMs, known(numberOf(s, kKeyOf<&SubflowStatus::minRtt>)));
  }
  return out;
}

nlohmann::json loadResult(const std::vector<LoadSample>& samples, size_t ended) {
  nlohmann::json out{{"bytes_per_s", nullptr},   {"loss", nullptr}, {"idle_rtt_ms", nullptr},
                     {"loaded_rtt_ms", nullptr}, {"sent_bytes", 0}, {"seconds", 0}};
  if (samples.size() < 2 || ended >= samples.size()) return out;
  const LoadSample &first = samples.front(), &last = samples.back(), &end = samples[ended];
  double from = first.at + kStart * (end.at - first.at);
  size_t begin = 0;
  while (begin < ended && samples[begin].at < from) ++begin;
  if (begin == ended) begin = 0;
  const LoadSample& start = samples[begin];
  // Subflows come and go: a sum that decreased has lost a subflow and cannot be used.
  if (end.at > start.at && end.delivered >= start.delivered)
    out["bytes_per_s"] = static_cast<double>(end.delivered - start.delivered) / (end.at - start.at);
  if (last.sentPackets > first.sentPackets && last.lostPackets >= first.lostPackets)
    out["loss"] = static_cast<double>(last.lostPackets - first.lostPackets) /
                  static_cast<double>(last.sentPackets - first.sentPackets);
  double idle = first.leastRttMs > 0 ? first.leastRttMs : first.srttMs, loaded = 0;
  for (const LoadSample& s : samples) loaded = std::max(loaded, s.srttMs);
  if (idle > 0) out["idle_rtt_ms"] = idle;
  if (loaded > 0) out["loaded_rtt_ms"] = loaded;
  out["sent_bytes"] = last.sentBytes - std::min(last.sentBytes, first.sentBytes);
  out["seconds"] = end.at - first.at;
  return out;
}

std::string loadText(const nlohmann::json& result) {
  Table table({"PATH", ">THROUGHPUT", ">LOSS", ">RTT IDLE", ">RTT LOADED", ">SENT"});
  for (const auto& run : listOf(result, "runs")) {
    std::string path = textOf(run, "path");
    table.add({path == "-" ? "all" : path, formatRate(numberOf(run, "bytes_per_s")),
               formatFraction(numberOf(run, "loss")),
               formatMilliseconds(numberOf(run, "idle_rtt_ms")),
               formatMilliseconds(numberOf(run, "loaded_rtt_ms")),
               formatVolume(numberOf(run, "sent_bytes"))});
  }
  return "to " + textOf(result, "peer") +
         ", through the tunnel, in the direction from here to there:\n" + table.toString();
}

std::string progressBar(const std::string& what, double part, double bytesPerSecond) {
  constexpr size_t kWidth = 30;
  auto full = static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * kWidth));
  return "[" + std::string(full, '#') + std::string(kWidth - full, ' ') + "] " + printable(what) +
         "  " + formatRate(bytesPerSecond);
}

}  // namespace braid
