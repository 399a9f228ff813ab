#include <cmath>

#include "ctl/views/explain.h"
#include "ctl/views/fields.h"
#include "gateway/control/history.h"

namespace braid {
namespace {

using Json = nlohmann::json;

std::string plural(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string span(const Json& trouble) {
  double from = numberOf(trouble, "from_unix_s"), to = numberOf(trouble, "to_unix_s");
  if (std::isnan(to)) return formatTimeOfDay(from) + " until now     ";
  return formatTimeOfDay(from) + " to " + formatTimeOfDay(to);
}

std::string length(const Json& trouble) {
  double from = numberOf(trouble, "from_unix_s"), to = numberOf(trouble, "to_unix_s");
  if (std::isnan(to)) return "";
  double s = to - from;
  return " for " + (s < 60 ? formatMilliseconds(std::max(1.0, s * 1000)) : formatAge(s));
}

// "430 of them were recovered before anyone noticed, the other 74 were sent again"
std::string lossCost(uint64_t lost, uint64_t recovered) {
  if (recovered == 0) return "all were sent again";
  if (recovered >= lost) return "all were recovered before anyone noticed";
  return std::to_string(recovered) + " of them were recovered before anyone noticed, the other " +
         std::to_string(lost - recovered) + " were sent again";
}

std::string troubleText(const Json& t) {
  std::string kind = textOf(t, "kind");
  if (kind == "loss") {
    uint64_t lost = countOf(t, "lost"), packets = countOf(t, "packets");
    return "lost " + formatShare(lost, packets) + " of " + plural(packets, "packet") + " (" +
           std::to_string(lost) + "): " + lossCost(lost, countOf(t, "recovered"));
  }
  if (kind == "queue")
    return "packets waited up to " + formatMilliseconds(numberOf(t, "most_queue_ms")) +
           " on the way: the line was full, or its radio slow";
  std::string what =
      kind == "silent" ? "fell silent" : "lost its uplink (cable, radio or address gone)";
  what += length(t) + "; it was taken out";
  if (flagOf(t, "stall_avoided"))
    what += ", and its packets went by the other paths: a stall avoided";
  return what + (t["to_unix_s"].is_null() ? ", and is not back yet" : ", and came back");
}

std::string pathText(const Json& path) {
  std::string text = textOf(path, "peer") + " by " + textOf(path, "path") + ": ";
  Json troubles = listOf(path, "troubles");
  text += troubles.empty() ? "good" : "bad " + plural(troubles.size(), "time");
  uint64_t sent = countOf(path, "sent_packets"), lost = countOf(path, "lost_packets");
  text += "; " + formatBytes(numberOf(path, "sent_bytes")) + " out, " +
          formatBytes(numberOf(path, "received_bytes")) + " in, lost " + formatShare(lost, sent) +
          " before recovery, " + formatShare(countOf(path, "repaired_packets"), sent) +
          " after it, RTT " + formatMilliseconds(numberOf(path, "least_rtt_ms")) + " at best\n";
  for (const Json& t : troubles) text += "  " + span(t) + "  " + troubleText(t) + "\n";
  return text;
}

std::string sumsText(const Json& sums) {
  std::string text = "What Braid did: ";
  text += plural(countOf(sums, "recovered_packets"), "lost packet") +
          " recovered before anyone noticed, " + std::to_string(countOf(sums, "repaired_packets")) +
          " sent again";
  if (uint64_t n = countOf(sums, "decoded_packets"))
    text += "; of what came in " + plural(n, "packet") + " given back by coding";
  if (uint64_t n = countOf(sums, "paths_taken_out"))
    text += "; a path taken out " + plural(n, "time") + ", back " +
            plural(countOf(sums, "paths_came_back"), "time") + ", " +
            plural(countOf(sums, "stalls_avoided"), "stall") + " avoided";
  return text + ".\n";
}

std::string eventText(const Json& event) {
  std::string peer = textOf(event, "peer");
  uint64_t count = countOf(event, "count");
  return "  " + formatTimeOfDay(numberOf(event, kKeyOf<&PastEvent::at>)) + "  " +
         (peer == "-" ? "" : "peer " + peer + ": ") + textOf(event, "text") +
         (count > 1 ? " (" + std::to_string(count) + " times, last " +
                          formatTimeOfDay(numberOf(event, kKeyOf<&PastEvent::last>)) + ")"
                    : "") +
         "\n";
}

}  // namespace

std::string explainText(const Json& explained) {
  double from = numberOf(explained, "from_unix_s"), until = numberOf(explained, "until_unix_s");
  std::string text = "The last " + formatAge(until - from) + ", from " + formatTimeOfDay(from) +
                     " to " + formatTimeOfDay(until) + ".\n\n";
  Json paths = listOf(explained, "paths");
  if (paths.empty())
    text += "Nothing is known of any path: no peer was up, or the daemon began just now.\n";
  for (const Json& path : paths) text += pathText(path);
  if (!paths.empty()) text += "\n" + sumsText(fieldOf(explained, "sums"));
  Json events = listOf(explained, "events");
  if (!events.empty()) text += "\nWhat else happened:\n";
  for (const Json& event : events) text += eventText(event);
  return text;
}

}  // namespace braid
