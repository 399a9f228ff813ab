#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ctl/views/format.h"
#include "ctl/views/host_names.h"
#include "ctl/views/views.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {

namespace {

using Json = nlohmann::json;

constexpr const char* kName = kKeyOf<&FlowStatus::name>;
constexpr const char* kDelivery = kKeyOf<&FlowStatus::delivery>;
constexpr const char* kSent = kKeyOf<&StreamStatus::sentBytes>;
constexpr const char* kReceived = kKeyOf<&StreamStatus::receivedBytes>;

Json flowRow(const Json& peer, const Json& flow) {
  Json row{{"peer", fieldOf(peer, kKeyOf<&PeerStatus::name>)}};
  for (const char* name : {kName, kDelivery, kKeyOf<&FlowStatus::queuedBytes>,
                           kKeyOf<&FlowStatus::drops>, kKeyOf<&FlowStatus::idle>})
    row[name] = fieldOf(flow, name);
  row[kSent] = fieldOf(flow, kKeyOf<&FlowStatus::bytes>);
  return row;
}

Json streamRow(const Json& peer, const Json& stream) {
  Json row{{"peer", fieldOf(peer, kKeyOf<&PeerStatus::name>)}};
  for (const char* name :
       {kName, kSent, kReceived, kKeyOf<&StreamStatus::queuedBytes>,
        kKeyOf<&StreamStatus::firstByte>, kKeyOf<&StreamStatus::age>, kKeyOf<&StreamStatus::idle>})
    row[name] = fieldOf(stream, name);
  row[kDelivery] = "stream, " + wordOf(stream, kKeyOf<&StreamStatus::state>);
  return row;
}

uint64_t bytesOf(const Json& row) {
  return countOf(row, kSent) + countOf(row, kReceived);
}

// What each peer has beyond what was listed.
std::string unlistedText(const Json& answer) {
  std::string text;
  for (const Json& peer : listOf(answer, "peers")) {
    const uint64_t all = countOf(peer, kKeyOf<&PeerStatus::flowCount>) +
                         countOf(peer, kKeyOf<&PeerStatus::streamCount>);
    const size_t listed = listOf(peer, "flows").size() + listOf(peer, "streams").size();
    if (all > listed)
      text += cell<&PeerStatus::name>(peer) + ": " + std::to_string(all - listed) +
              " more are not listed\n";
  }
  return text;
}

}  // namespace

std::string flowKey(const Json& row) {
  const bool isStream = wordOf(row, kDelivery).starts_with("stream");
  return wordOf(row, "peer") + (isStream ? "\nstream " : "\n") + wordOf(row, kName);
}

bool isIdle(const Json& row) {
  return numberOf(row, kKeyOf<&FlowStatus::idle>, 0) >= kIdleSeconds;
}

Json::array_t flowRows(const Json& answer) {
  Json::array_t rows;
  for (const Json& peer : listOf(answer, "peers")) {
    for (const Json& flow : listOf(peer, "flows")) rows.push_back(flowRow(peer, flow));
    for (const Json& stream : listOf(peer, "streams")) rows.push_back(streamRow(peer, stream));
  }
  return rows;
}

std::string flowsText(const FlowLook& now, const FlowLook& last, const HostNames& names,
                      bool withIdle) {
  const double seconds = now.at - last.at;
  std::map<std::string, uint64_t> before;
  for (const Json& row : flowRows(last.answer)) before[flowKey(row)] = bytesOf(row);
  const bool isKnown = seconds > 0 && last.answer.is_object();
  struct Row {
    double rate;  // bytes per second
    uint64_t bytes;
    Json figures;
  };
  std::vector<Row> rows;
  size_t idle = 0;
  for (Json& row : flowRows(now.answer)) {
    if (isIdle(row) && !withIdle) {
      ++idle;
      continue;
    }
    const uint64_t bytes = bytesOf(row);
    // What began since then counts from 0.
    auto known = before.find(flowKey(row));
    const uint64_t grown =
        bytes - (known != before.end() && known->second <= bytes ? known->second : 0);
    rows.push_back({isKnown ? static_cast<double>(grown) / seconds : 0, bytes, std::move(row)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.rate, a.bytes) > std::pair(b.rate, b.bytes);
  });
  Table table({">RATE", "FLOW", "PEER", "DELIVERY", ">SENT", ">RECEIVED", ">WAITING", ">DROPPED",
               ">FIRST BYTE"});
  for (const Row& row : rows) {
    const Json& f = row.figures;
    table.add({isKnown ? formatRate(row.rate) : "-", names.inFlow(textOf(f, kName)),
               textOf(f, "peer"), textOf(f, kDelivery), formatBytes(numberOf(f, kSent)),
               formatBytes(numberOf(f, kReceived)), cell<&FlowStatus::queuedBytes>(f),
               cell<&FlowStatus::drops>(f),
               formatMilliseconds(1000 * numberOf(f, kKeyOf<&StreamStatus::firstByte>))});
  }
  std::string text = table.empty() ? (idle > 0 ? "" : "no flows\n") : table.toString();
  if (idle > 0) text += std::to_string(idle) + " idle\n";
  return text + unlistedText(now.answer);
}

}  // namespace braid
