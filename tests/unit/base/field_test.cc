#include "base/field.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/drop.h"
#include "base/time.h"

namespace braid {
namespace field_test {

struct Shots {
  uint64_t fired = 0, hit = 0;
};
struct Counts {
  uint64_t sent = 0;
};
struct Manner {
  bool kind = true;
  uint64_t bows = 0;
};
struct Status : Counts {
  std::string name;
  Duration age{};
  double rate = 0;
  Manner manner;
  std::array<Shots, 2> shots{};
  std::vector<int> list;
  uint64_t queued = 0;
};

}  // namespace field_test

template <>
inline constexpr auto kFieldsOf<field_test::Shots> = field::table<field_test::Shots>(
    field::counter("fired", FieldUnit::kNone, "", &field_test::Shots::fired),
    field::tally("hit", FieldUnit::kNone, "", &field_test::Shots::hit));
template <>
inline constexpr auto kFieldsOf<field_test::Counts> =
    field::table<field_test::Counts>(field::counter("sent_packets", FieldUnit::kPackets,
                                                    "datagrams sent", &field_test::Counts::sent));
template <>
inline constexpr auto kFieldsOf<field_test::Manner> = field::table<field_test::Manner>(
    field::flag("kind", "", &field_test::Manner::kind),
    field::counter("bows", FieldUnit::kNone, "", &field_test::Manner::bows));
template <>
inline constexpr auto kFieldsOf<field_test::Status> = field::table<field_test::Status>(
    field::base<field_test::Counts>(), field::text("name", "", &field_test::Status::name),
    field::gauge("age_s", FieldUnit::kSeconds, "", &field_test::Status::age),
    field::gauge("rate_bytes_per_s", FieldUnit::kBytesPerSecond, "", &field_test::Status::rate),
    field::inlined(&field_test::Status::manner),
    field::object("shots", "", &field_test::Status::shots),
    field::unlisted(&field_test::Status::list),
    field::gauge("queued_bytes", FieldUnit::kBytes, "", &field_test::Status::queued));

namespace field_test {
namespace {

// ---- what does not compile

template <typename T, typename... Value>
constexpr bool covered = field::Covers<T, field::Unlisted<Value>...>;

struct Tail {
  uint64_t a = 0;
  bool b = false, c = false;  // the second one fits into the struct's padding
};
static_assert(covered<Tail, uint64_t, bool, bool>);
static_assert(!covered<Tail, uint64_t, bool>, "the last one is missing");
static_assert(!covered<Tail, bool, bool>, "the first one is missing");
static_assert(!covered<Tail, uint64_t, bool, bool, bool>, "one too many");
struct Alike {
  uint64_t a = 0, b = 0, c = 0;
};
static_assert(!covered<Alike, uint64_t, uint64_t>, "one in the middle is missing");
struct Derived : Alike {
  uint64_t d = 0;
};
static_assert(covered<Derived, Alike, uint64_t>);
static_assert(!covered<Derived, uint64_t>, "the base is missing");
static_assert(!covered<Derived, Alike>, "its own is missing");
struct Rich {
  std::array<uint64_t, 3> array{};
  std::string text;
  std::vector<std::string> texts;
  Alike inner;
  std::optional<Alike> last;
};
static_assert(covered<Rich, std::array<uint64_t, 3>, std::string, std::vector<std::string>, Alike,
                      std::optional<Alike>>);
static_assert(
    !covered<Rich, std::array<uint64_t, 3>, std::string, std::vector<std::string>, Alike>);
static_assert(!covered<Rich, std::array<uint64_t, 3>, std::string, std::vector<std::string>,
                       std::optional<Alike>>);
static_assert(!covered<Rich, std::string, std::vector<std::string>, Alike, std::optional<Alike>>);

// ---- what the tables are good for

TEST(Field, AMemberIsFoundWithWhatItsTableSays) {
  constexpr FieldInfo kSent = infoOf<&Status::sent>();
  EXPECT_STREQ(kSent.name, "sent_packets");
  EXPECT_STREQ(kSent.help, "datagrams sent");
  EXPECT_EQ(kSent.kind, FieldKind::kCounter);
  EXPECT_STREQ(unitName(kSent.unit), "packets");
  EXPECT_STREQ(infoOf<&Status::queued>().name, "queued_bytes") << "not another one of its type";
  EXPECT_STREQ(infoOf<&Manner::bows>().name, "bows");
}

TEST(Field, EachFigureIsSeenOnceBasesAndInlinedOnesAmongThem) {
  Status status;
  status.sent = 1, status.manner.bows = 2, status.queued = 3;
  std::vector<std::string> names;
  std::map<std::string, uint64_t> numbers;
  forEachField(status, [&](const FieldInfo& info, const auto& value) {
    names.emplace_back(info.name);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, uint64_t>)
      numbers[info.name] = value;
  });
  EXPECT_EQ(names, (std::vector<std::string>{"sent_packets", "name", "age_s", "rate_bytes_per_s",
                                             "kind", "bows", "shots", "queued_bytes"}));
  EXPECT_EQ(numbers, (std::map<std::string, uint64_t>{
                         {"sent_packets", 1}, {"bows", 2}, {"queued_bytes", 3}}));
}

TEST(Field, SumsAreOfCountersAndTalliesOnly) {
  Status sum, more;
  sum.sent = 1, sum.queued = 10, sum.rate = 5, sum.shots[1] = {1, 1}, sum.name = "sum";
  more.sent = 2, more.queued = 20, more.rate = 7, more.shots[1] = {2, 1}, more.manner = {false, 4};
  addCounters(sum, more);
  EXPECT_EQ(sum.sent, 3u);
  EXPECT_EQ(sum.manner.bows, 4u);
  EXPECT_TRUE(sum.manner.kind);
  EXPECT_EQ(sum.shots[1].fired, 3u);
  EXPECT_EQ(sum.shots[1].hit, 2u);
  EXPECT_EQ(sum.queued, 10u);
  EXPECT_EQ(sum.rate, 5);
  EXPECT_EQ(sum.name, "sum");
  subtractCounters(sum, more);
  EXPECT_EQ(sum.sent, 1u);
  EXPECT_EQ(sum.shots[1].fired, 1u);
  EXPECT_EQ(sum.queued, 10u);
  addCounters<Counts>(sum, more);
  EXPECT_EQ(sum.sent, 3u);
  EXPECT_EQ(sum.shots[1].fired, 1u) << "of the base only";
}

TEST(Field, EachCauseOfADropHasItsOwnName) {
  std::map<std::string, int> names;
  for (const DropInfo& drop : kDrops) ++names[drop.info.name];
  EXPECT_EQ(names.size(), kDropCount);
  EXPECT_STREQ(dropName(Drop::kBadSeal), "decrypt_failed");
}

}  // namespace
}  // namespace field_test
}  // namespace braid
