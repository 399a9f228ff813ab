#include "gateway/state/meter_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace braid::meter_store_test {
namespace {

using testing::HasSubstr;

constexpr MeterPeriod kDaily{MeterPeriod::Unit::kDay, 1, 0};
constexpr std::time_t kDay = 86400;
constexpr std::time_t kNoon = 20000 * kDay + kDay / 2;
constexpr std::time_t kMidnight = 20001 * kDay;

struct MeterStoreTest : testing::Test {
  std::filesystem::path folder;
  std::string path;
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    std::string name = testing::TempDir() + "meter_store_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    path = folder / "edge.state";
  }
  static std::string content(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    ::unsetenv("TZ");
    ::tzset();
  }
};

TEST_F(MeterStoreTest, CountsSurviveARestartWithinThePeriod) {
  {
    MeterStore book(path);
    EXPECT_EQ(book.open("lte", kDaily, kNoon).used, 0u);
    EXPECT_EQ(book.find("lte")->until, kMidnight);
    book.note("lte", 123'456'789'012);
    EXPECT_EQ(book.save(kNoon), "");
  }
  MeterStore book(path);
  EXPECT_EQ(book.open("lte", kDaily, kNoon + 60).used, 123'456'789'012u);
  EXPECT_EQ(book.open("lte", kDaily, kMidnight - 1).used, 123'456'789'012u);
  EXPECT_EQ(book.open("lte", kDaily, kMidnight).used, 0u) << "a new period";
  EXPECT_EQ(book.find("lte")->until, kMidnight + kDay);
}

// A gateway without a clock battery starts in 1970 and learns the time from the network later.
TEST_F(MeterStoreTest, AClockThatWasSetBackDoesNotBeginANewPeriod) {
  {
    MeterStore book(path);
    book.open("lte", kDaily, kNoon);
    book.note("lte", 5'000'000);
    EXPECT_EQ(book.save(kNoon), "");
  }
  MeterStore book(path);
  EXPECT_EQ(book.open("lte", kDaily, 60).used, 5'000'000u);
  EXPECT_EQ(book.find("lte")->until, kMidnight);
  EXPECT_EQ(book.open("lte", kDaily, kNoon + 3600).used, 5'000'000u);
  EXPECT_EQ(book.open("lte", kDaily, kMidnight).used, 0u);
}

TEST_F(MeterStoreTest, AnotherKindOfPeriodKeepsTheCount) {
  MeterStore book(path);
  book.open("lte", kDaily, kNoon);
  book.note("lte", 7);
  MeterPeriod later{MeterPeriod::Unit::kDay, 1, 6};
  EXPECT_EQ(book.open("lte", later, kNoon).used, 7u);
  EXPECT_EQ(book.find("lte")->until, kMidnight + 6 * 3600);
}

TEST_F(MeterStoreTest, SavesAtOnceAfterMuchAndLaterAfterLittle) {
  MeterStore book(path);
  book.open("lte", kDaily, kNoon);
  EXPECT_TRUE(book.wantsSave(kNoon)) << "a new period";
  EXPECT_EQ(book.save(kNoon), "");
  EXPECT_FALSE(book.wantsSave(kNoon + 3600));
  book.note("lte", 999'999);
  EXPECT_FALSE(book.wantsSave(kNoon + 599));
  EXPECT_TRUE(book.wantsSave(kNoon + 600));
  book.note("lte", 1'000'000);
  EXPECT_TRUE(book.wantsSave(kNoon + 1));
  book.note("x", 5'000'000);
  EXPECT_EQ(book.find("x"), nullptr) << "not opened, not counted";
}

TEST_F(MeterStoreTest, WhatIsAddedIsSavedEveryTenMinutesHoweverMuchItIs) {
  MeterStore book(path);
  book.open("lte today", kDaily, kNoon);
  EXPECT_EQ(book.save(kNoon), "");
  book.add("lte today", 0);
  EXPECT_FALSE(book.wantsSave(kNoon + 3600));
  book.add("lte today", 5'000'000'000);
  book.add("lte today", 7);
  book.add("x", 1);
  EXPECT_EQ(book.find("x"), nullptr) << "not opened, not counted";
  EXPECT_FALSE(book.wantsSave(kNoon + 599)) << "flash memory wears out";
  EXPECT_TRUE(book.wantsSave(kNoon + 600));
  EXPECT_EQ(book.save(kNoon + 600), "");
  EXPECT_EQ(MeterStore(path).find("lte today")->used, 5'000'000'007u);
}

TEST_F(MeterStoreTest, IsReadableByOwnerAndGroupOnly) {
  MeterStore book(path);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0137, 0u);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(MeterStoreTest, WhatItDidNotWriteIsSetAside) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"uplinks":{"lte":1}})",
        R"({"uplinks":{"lte":{"used":-1,"until":1,"period":[0,1,0]}}})",
        R"({"uplinks":{"lte":{"used":"x","until":1,"period":[0,1,0]}}})",
        R"({"uplinks":{"lte":{"used":1,"until":1,"period":[0]}}})",
        R"({"uplinks":{"lte":{"used":1,"until":1e300,"period":[0,1,0]}}})",
        R"({"uplinks":{"lte":{"used":1,"until":18446744073709551615,"period":[0,1,0]}}})",
        R"({"uplinks":{"lte":{"used":1,"until":1,"period":[256,1,0]}}})",
        R"({"uplinks":{"lte":{"used":1,"until":1,"period":[0,1.5,0]}}})"}) {
    std::ofstream(path) << text;
    MeterStore book(path);
    EXPECT_EQ(book.find("lte"), nullptr) << text;
    EXPECT_EQ(content(path + ".damaged"), text);
    EXPECT_NE(content(path), text);
  }
  std::ofstream(path)
      << R"({"uplinks":{"lte":{"used":1,"until":99999999999,"period":[77,99,99]}}})";
  MeterStore book(path);
  EXPECT_EQ(book.open("lte", kDaily, kNoon).used, 1u);
  EXPECT_EQ(book.find("lte")->until, kMidnight);
}

// Found by review: after a power cut an empty file counted as a first start, and a file of zeros
// made the daemon's start fail.
TEST_F(MeterStoreTest, AfterAPowerCutTheCopyOfSomeMinutesAgoHolds) {
  auto used = [&] {
    MeterStore book(path);
    const MeterStore::Entry* entry = book.find("lte");
    return entry ? entry->used : 0;
  };
  auto runForAnHour = [&] {
    const std::time_t start = std::time(nullptr);
    MeterStore book(path);
    book.open("lte", {MeterPeriod::Unit::kMonth, 1, 0}, kNoon);
    for (int minute = 0; minute <= 60; ++minute) {
      book.note("lte", 1'000'000 * static_cast<uint64_t>(minute));
      EXPECT_EQ(book.save(start + 60 * minute), "");
      auto written = std::filesystem::file_time_type::clock::now() + std::chrono::minutes(minute);
      std::filesystem::last_write_time(path, written);
    }
  };
  for (const std::string& damage : {std::string(), std::string(200, '\0'), std::string("{")}) {
    runForAnHour();
    std::ofstream(path) << damage;
    EXPECT_GE(used(), 49'000'000u);
    EXPECT_EQ(content(path + ".damaged"), damage);
    std::ofstream(path) << damage;
    std::ofstream(path + ".next") << "";
    EXPECT_GE(used(), 38'000'000u) << "the same power cut took the fresher copy";
    EXPECT_LE(used(), 50'000'000u) << "it is written long before";
    EXPECT_FALSE(std::filesystem::exists(path + ".next"))
        << "it would take the place of the good one";
    for (const char* name : {"", ".next", ".old", ".damaged"}) std::filesystem::remove(path + name);
  }
  runForAnHour();
  std::filesystem::remove(path);
  EXPECT_EQ(used(), 0u) << "whoever removes the file begins at 0";
  std::ofstream(path) << "";
  EXPECT_EQ(used(), 0u) << "also when a power cut follows";
  runForAnHour();
  {
    MeterStore book(path);
    for (std::time_t time : {kDay, kNoon}) {
      book.note("lte", 70'000'000);
      EXPECT_EQ(book.save(time), "");
    }
  }
  std::ofstream(path) << "";
  std::ofstream(path + ".next") << "";
  EXPECT_GE(used(), 38'000'000u);
  EXPECT_LE(used(), 60'000'000u) << "of before the boot after which the clock was set";
}

TEST_F(MeterStoreTest, SaysAtOnceThatItCannotWrite) {
  try {
    MeterStore book(folder / "missing" / "edge.state");
    ADD_FAILURE();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("No such file or directory; create the folder"));
  }
}

}  // namespace
}  // namespace braid::meter_store_test
