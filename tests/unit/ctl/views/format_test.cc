#include "ctl/views/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace braid::format_test {
namespace {

TEST(Format, JsonIsAsciiAndSaysTheSame) {
  const nlohmann::json value{{"name", "M\u00fcller \u009b2J \u202egnp\u202c \x7f"}};
  const std::string text = prettyJson(value);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); }))
      << text;
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

TEST(Format, Bytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(999), "999 B");
  EXPECT_EQ(formatBytes(1500), "1.50 kB");
  EXPECT_EQ(formatBytes(20.3e6), "20.3 MB");
  EXPECT_EQ(formatBytes(999'999), "1.00 MB") << "not 1000 kB";
  EXPECT_EQ(formatBytes(3.5e12), "3.50 TB");
  EXPECT_EQ(formatBytes(3e15), "3000 TB");
  EXPECT_EQ(formatBytes(NAN), "-");
}

TEST(Format, Rates) {
  EXPECT_EQ(formatRate(0), "0 bit/s");
  EXPECT_EQ(formatRate(1000), "8.00 kbit/s");
  EXPECT_EQ(formatRate(11.65e6), "93.2 Mbit/s");
  EXPECT_EQ(formatRate(124.9999e6), "1.00 Gbit/s") << "not 1000 Mbit/s";
  EXPECT_EQ(formatRate(INFINITY), "-");
}

TEST(Format, Times) {
  EXPECT_EQ(formatMilliseconds(0.42), "0.42 ms");
  EXPECT_EQ(formatMilliseconds(12.5), "12.5 ms");
  EXPECT_EQ(formatMilliseconds(9.999), "10.0 ms");
  EXPECT_EQ(formatMilliseconds(99.97), "100 ms");
  EXPECT_EQ(formatMilliseconds(1200), "1.20 s");
  EXPECT_EQ(formatMilliseconds(0), "-") << "no sample yet";
  EXPECT_EQ(formatAge(45.9), "45 s");
  EXPECT_EQ(formatAge(200), "3 min 20 s");
  EXPECT_EQ(formatAge(7500), "2 h 5 min");
  EXPECT_EQ(formatAge(7200), "2 h");
  EXPECT_EQ(formatAge(9 * 86400 + 4 * 3600), "9 d 4 h");
  EXPECT_EQ(formatAge(NAN), "-");
  EXPECT_EQ(formatShortAge(45.9), "45 s");
  EXPECT_EQ(formatShortAge(200), "3 min");
  EXPECT_EQ(formatShortAge(9 * 86400 + 4 * 3600), "9 d");
  EXPECT_EQ(formatShortAge(NAN), "-");
  EXPECT_EQ(formatAge(-1), "-");
  EXPECT_EQ(formatAge(1e300), "11574074074 d 1 h");
}

TEST(Format, Microseconds) {
  EXPECT_EQ(formatMicroseconds(0.42), "0.42 us");
  EXPECT_EQ(formatMicroseconds(12.5), "12.5 us");
  EXPECT_EQ(formatMicroseconds(999.4), "999 us");
  EXPECT_EQ(formatMicroseconds(999.6), "1.00 ms");
  EXPECT_EQ(formatMicroseconds(0), "-") << "not measured";
  EXPECT_EQ(formatMicroseconds(NAN), "-");
}

TEST(Format, FractionsAndNumbers) {
  EXPECT_EQ(formatFraction(0), "0 %");
  EXPECT_EQ(formatFraction(0.0125), "1.25 %");
  EXPECT_EQ(formatFraction(0.00001), "<0.01 %");
  EXPECT_EQ(formatFraction(1), "100 %");
  EXPECT_EQ(formatFraction(NAN), "-");
  EXPECT_EQ(formatFraction(-1), "-");
  EXPECT_EQ(formatNumber(1.25), "1.25");
  EXPECT_EQ(formatNumber(12.34), "12.3");
  EXPECT_EQ(formatNumber(INFINITY), "-");
}

TEST(Format, Shares) {
  EXPECT_EQ(formatShare(0, 0), "-");
  EXPECT_EQ(formatShare(0, 10), "0 %");
  EXPECT_EQ(formatShare(1, 8), "12.5 %");
  EXPECT_EQ(formatShare(1, 5000), "0.02 %");
  EXPECT_EQ(formatShare(1, 1'000'000), "<0.01 %");
  EXPECT_EQ(formatShare(10, 10), "100 %");
}

TEST(Format, Dates) {
  EXPECT_TRUE(formatDate(1'782'864'000).starts_with("2026-0")) << "in any time zone";
  EXPECT_EQ(formatDate(1'782'864'000).size(), 16u);
  EXPECT_EQ(formatDate(-1), "-");
  EXPECT_EQ(formatDate(NAN), "-");
  EXPECT_EQ(formatDate(1e18), "-");
}

TEST(Format, TextOfOthersDoesNotSteerTheTerminal) {
  EXPECT_EQ(printable("a\x1b[2J\n\x7f\xc3\xa9"), "a?[2J??\xc3\xa9");
}

TEST(Format, AParagraphFitsTheTerminal) {
  EXPECT_EQ(paragraph("note: a b"), "note: a b\n");
  const std::string word(48, 'x'), shorter(45, 'y');
  EXPECT_EQ(paragraph(word + "  " + word + " " + shorter + " " + shorter + " z"),
            word + "  " + word + "\n  " + shorter + " " + shorter + " z\n");
  EXPECT_EQ(paragraph(word + " " + word + " xx"), word + " " + word + " xx\n") << "100 columns";
  EXPECT_EQ(paragraph(word + " " + word + " xxx"), word + " " + word + "\n  xxx\n");
  const std::string path(kColumns + 1, '/');
  EXPECT_EQ(paragraph("see " + path + " there"), "see\n  " + path + "\n  there\n");
  EXPECT_EQ(paragraph("one\ntwo"), "one\n  two\n");
  EXPECT_EQ(paragraph(""), "\n");
}

TEST(Format, AvailabilityIsNeverRoundedUp) {
  EXPECT_EQ(formatAvailability(1), "100 %");
  EXPECT_EQ(formatAvailability(0.999999), "99.99 %");
  EXPECT_EQ(formatAvailability(0.99), "99.00 %");
  EXPECT_EQ(formatAvailability(0.5), "50.0 %");
  EXPECT_EQ(formatAvailability(0), "0 %");
  EXPECT_EQ(formatAvailability(std::nan("")), "-");
}

}  // namespace
}  // namespace braid::format_test
