#include "tunnel/wire/frame_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/unit/tunnel/wire/frame_bytes.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid::frame_traits_test {
namespace {

struct Row {
  std::string name;
  bool eliciting;
};

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The table of section 5 of docs/protocol.md, by number: "| 0x01 | PING * | none |".
std::map<unsigned, Row> documentedFrames() {
  std::map<unsigned, Row> rows;
  std::ifstream document(BRAID_DOCS "/protocol.md");
  for (std::string line; std::getline(document, line);) {
    if (line.rfind("| 0x", 0) != 0) continue;
    std::istringstream cells(line.substr(1));
    std::string number, name;
    std::getline(cells, number, '|');
    std::getline(cells, name, '|');
    name = trimmed(name);
    bool eliciting = name.ends_with(" *");
    if (eliciting) name = trimmed(name.substr(0, name.size() - 1));
    rows[static_cast<unsigned>(std::stoul(number, nullptr, 16))] = {name, eliciting};
  }
  return rows;
}

TEST(FrameTraits, AreThoseOfTheProtocolDocument) {
  std::map<unsigned, Row> rows = documentedFrames();
  ASSERT_TRUE(rows.contains(kPaddingNumber));
  EXPECT_EQ(rows[kPaddingNumber].name, "PADDING");
  EXPECT_FALSE(rows[kPaddingNumber].eliciting);
  EXPECT_EQ(rows.size(), kFrameTraits.size() + 1);
  for (const FrameTraits& traits : kFrameTraits) {
    ASSERT_TRUE(rows.contains(traits.number)) << traits.name;
    EXPECT_EQ(rows[traits.number].name, traits.name);
    EXPECT_EQ(rows[traits.number].eliciting, traits.eliciting) << traits.name;
  }
}

TEST(FrameTraits, OfAFrameThatWasReadAreThoseOfItsType) {
  EXPECT_EQ(traitsOf(PingFrame{}).name, "PING");
  EXPECT_EQ(traitsOf(SubflowPreferenceFrame{}).name, "SUBFLOW_PREFERENCE");
  EXPECT_EQ(&kFrame<SkipFrame>,
            &std::get<frame_table::Entry<SkipFrame>>(frame_table::kEntries).traits);
  EXPECT_EQ(traitsOf(SkipFrame{}).number, kFrame<SkipFrame>.number);
}

TEST(FrameTraits, WhatIsSentAgainAsksForAnAck) {
  for (const FrameTraits& traits : kFrameTraits)
    EXPECT_TRUE(!traits.control || traits.eliciting) << traits.name;
}

// ---- the largest size of each type

constexpr uint64_t kMaxVarint = (uint64_t{1} << 62) - 1;

AckFrame largestAck() {
  AckFrame ack;
  ack.delay = std::chrono::microseconds(kMaxVarint);
  ack.ecn = {kMaxVarint, kMaxVarint, kMaxVarint};
  ack.count = kMaxAckRanges;
  PacketNumber last(kMaxVarint);
  for (AckFrame::Range& range : ack.ranges) {
    range = {last - (uint64_t{1} << 31), last};
    last = range.first - (uint64_t{1} << 31);
  }
  return ack;
}

size_t largestParityHeader() {
  BlockDescription block;
  for (uint64_t i = 0; i < kMaxBlockSymbols; ++i)
    block.ranges[block.rangeCount++] = {static_cast<uint8_t>(i), kMaxVarint, 1};
  return parityHeaderSize(block);
}

TEST(FrameTraits, TheLargestSizeIsReached) {
  PathPreference preference{PathUse::kBackup, PathPreference::kMaxWeight, 255,
                            PathPreference::kMaxCeiling};
  EXPECT_EQ(encode(PingFrame{}).size(), kFrame<PingFrame>.largest);
  EXPECT_EQ(encode(largestAck()).size(), kFrame<AckFrame>.largest);
  AckFrame timed = largestAck();
  timed.received = ReceiveTime{ReceiveTime::kModulus - 1, true};
  EXPECT_EQ(encode(timed).size(), kFrame<TimedAckFrame>.largest);
  EXPECT_EQ(encode(PathChallengeFrame{}).size(), kFrame<PathChallengeFrame>.largest);
  EXPECT_EQ(encode(PathResponseFrame{}).size(), kFrame<PathResponseFrame>.largest);
  EXPECT_EQ(encode(SkipFrame{0_flow, Dsn(kMaxVarint), kMaxSkip}).size(), kFrame<SkipFrame>.largest);
  EXPECT_EQ(encode(SubflowStatusFrame{0_subflow, kMaxVarint, true}).size(),
            kFrame<SubflowStatusFrame>.largest);
  EXPECT_EQ(encode(CloseFrame{kMaxVarint}).size(), kFrame<CloseFrame>.largest);
  EXPECT_EQ(largestParityHeader(), kFrame<ParityFrame>.largest);
  EXPECT_EQ(encode(RecoveredFrame{0_subflow, PacketNumber(kMaxVarint), kMaxBlockSymbols}).size(),
            kFrame<RecoveredFrame>.largest);
  EXPECT_EQ(encode(SubflowPreferenceFrame{0_subflow, kMaxVarint, preference}).size(),
            kFrame<SubflowPreferenceFrame>.largest);
  EXPECT_EQ(encode(RenewKeysFrame{0xffffffff}).size(), kFrame<RenewKeysFrame>.largest);
  EXPECT_EQ(encode(KeysReadyFrame{0xffffffff, true}).size(), kFrame<KeysReadyFrame>.largest);
  EXPECT_EQ(encode(StreamCreditFrame{StreamId(kMaxVarint), kMaxVarint}).size(),
            kFrame<StreamCreditFrame>.largest);
  EXPECT_EQ(encode(StreamResetFrame{StreamId(kMaxVarint), kMaxVarint}).size(),
            kFrame<StreamResetFrame>.largest);
  Params params{kMaxVarint, kMaxVarint, kMaxVarint, kMaxVarint, kMaxVarint, kMaxVarint, kMaxVarint};
  EXPECT_EQ(encode(ParamsFrame{params, UINT64_MAX}).size(), kFrame<ParamsFrame>.largest);
  const std::string name(kLongestName, 'n');
  EXPECT_EQ(encode(SubflowNameFrame{name}).size(), kFrame<SubflowNameFrame>.largest);
  EXPECT_EQ(encode(ObservedAddressFrame{*Endpoint::parse("[2001:db8::1]:4433")}).size(),
            kFrame<ObservedAddressFrame>.largest);
  EXPECT_EQ(encode(OptionalFrame{0x62, kMaxGrease}).size(), kFrame<OptionalFrame>.largest);
  EXPECT_EQ(encode(OptionalAskingFrame{0x40, kMaxGrease}).size(),
            kFrame<OptionalAskingFrame>.largest);
}

TEST(FrameTraits, TheLargestOfAKindIsOverAllItsTypes) {
  EXPECT_EQ(largestFrame(&FrameTraits::control), kFrame<ParamsFrame>.largest);
  EXPECT_EQ(largestFrame(&FrameTraits::symbol), kDataFrameHeader);
}

}  // namespace
}  // namespace braid::frame_traits_test
