// Compares the figures of the control socket with docs/figures.md.

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "tunnel/api/status.h"

namespace braid::figures_test {
namespace {

template <typename T>
std::vector<FieldInfo> fieldsOf() {
  std::vector<FieldInfo> out;
  forEachField(T{}, [&](const FieldInfo& info, const auto&) { out.push_back(info); });
  return out;
}

std::vector<FieldInfo> drops() {
  std::vector<FieldInfo> out;
  for (const DropInfo& drop : kDrops) out.push_back(drop.info);
  return out;
}

/// The fields of each object in an answer.
std::vector<std::vector<FieldInfo>> objects() {
  return {fieldsOf<GatewayStatus>(),  fieldsOf<UplinkStatus>(),  fieldsOf<MeterPeriodStatus>(),
          fieldsOf<CarriedStatus>(),  fieldsOf<PeerStatus>(),    fieldsOf<SubflowStatus>(),
          fieldsOf<FlowStatus>(),     fieldsOf<StreamStatus>(),  fieldsOf<ShimStatus>(),
          fieldsOf<ActuatorCounts>(), fieldsOf<TunnelStatus>(),  fieldsOf<TraceStatus>(),
          fieldsOf<MeasureStatus>(),  fieldsOf<PathStep>(),      fieldsOf<PeerStep>(),
          fieldsOf<PastEvent>(),      fieldsOf<StreamFigures>(), drops(),
          fieldsOf<HostDrops>(),      fieldsOf<HostTraffic>()};
}

std::string documented(const std::vector<FieldInfo>& fields) {
  std::string text = "\n\n| name | unit | kind | meaning |\n| --- | --- | --- | --- |\n";
  for (const FieldInfo& f : fields)
    text += std::string("| `") + f.name + "` | " + unitName(f.unit) + " | " + kindName(f.kind) +
            " | " + f.help + " |\n";
  return text + "\n";
}

TEST(Figures, AreThoseOfTheDocument) {
  std::ifstream file(BRAID_DOCS "/figures.md");
  std::stringstream document;
  document << file.rdbuf();
  ASSERT_FALSE(document.str().empty());
  for (const auto& object : objects()) {
    EXPECT_NE(document.str().find(documented(object)), std::string::npos)
        << "docs/figures.md lacks this table:" << documented(object);
  }
}

TEST(Figures, NamesDifferWithinAnObject) {
  for (const auto& object : objects()) {
    std::set<std::string> names;
    for (const FieldInfo& f : object) EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_FALSE(names.empty());
  }
}

/// The unit at the end of a name; nullopt: none.
std::optional<FieldUnit> unitIn(std::string_view name) {
  constexpr std::pair<const char*, FieldUnit> kEnds[] = {
      {"_bytes_per_s", FieldUnit::kBytesPerSecond},
      {"_unix_s", FieldUnit::kUnixSeconds},
      {"_ms", FieldUnit::kMilliseconds},
      {"_s", FieldUnit::kSeconds},
      {"bytes", FieldUnit::kBytes},
      {"packets", FieldUnit::kPackets}};
  for (auto [end, unit] : kEnds)
    if (name.ends_with(end)) return unit;
  return std::nullopt;
}

// The names of fields with a unit end in that unit. Counts, packets and fractions may omit it.
TEST(Figures, NamesCarryTheirUnit) {
  for (const auto& object : objects()) {
    for (const FieldInfo& f : object) {
      bool isPlain = f.unit == FieldUnit::kNone || f.unit == FieldUnit::kPackets ||
                     f.unit == FieldUnit::kFraction;
      EXPECT_EQ(unitIn(f.name).value_or(isPlain ? f.unit : FieldUnit::kNone), f.unit) << f.name;
    }
  }
}

TEST(Figures, EachSaysWhatItMeans) {
  for (const auto& object : objects()) {
    for (const FieldInfo& f : object) {
      EXPECT_GE(std::string_view(f.help).size(), 5u) << f.name;
      EXPECT_FALSE(std::string_view(f.help).ends_with('.')) << f.name;
    }
  }
}

}  // namespace
}  // namespace braid::figures_test
