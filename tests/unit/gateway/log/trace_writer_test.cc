#include "gateway/log/trace_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "host/system.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::trace_writer_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Kind = TraceEvent::Kind;

constexpr Kind kKinds[] = {Kind::kPacketLost,     Kind::kCopySent,       Kind::kBlockStarted,
                           Kind::kParitySent,     Kind::kParityReceived, Kind::kBlockDecoded,
                           Kind::kPacketRecovered};
const Time kStart{100s};

TraceEvent event(Kind kind = Kind::kPacketLost, PacketNumber pn = 9_pn) {
  TraceEvent e;
  e.kind = kind, e.time = kStart + 12345678ns, e.session = 7, e.subflow = 1_subflow,
  e.on = 2_subflow, e.index = 3, e.k = 30;
  e.m = 4, e.block = 500_block, e.pn = pn, e.onPn = 11_pn, e.lossRate = 0.25;
  return e;
}

class TraceWriterTest : public testing::Test {
 protected:
  TraceWriterTest() {
    std::string name = (fs::temp_directory_path() / "braid-trace-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "t.trace";
  }
  ~TraceWriterTest() override { fs::remove_all(folder_); }

  std::vector<json> lines() {
    std::ifstream file(path_);
    std::vector<json> out;
    for (std::string text; std::getline(file, text);)
      out.push_back(json::parse(text, nullptr, false));
    return out;
  }
  std::string openError(const std::string& path) {
    try {
      openTraceFile(path);
    } catch (const SystemError& error) {
      return error.what();
    }
    return "";
  }
  // Waits until the thread has written or dropped `events` events.
  TraceStatus settled(const TraceWriter& writer, uint64_t events) {
    for (int i = 0; i < 6000; ++i) {  // a minute: the sanitizers on a busy machine take their time
      TraceStatus s = writer.status();
      if (s.written + s.dropped >= events) return s;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return writer.status();
  }

  fs::path folder_, path_;
};

TEST(TraceLine, HoldsTheFieldsThatTheKindNamesAndNoOthers) {
  auto line = [](Kind kind) { return traceLine(event(kind), kStart); };
  EXPECT_EQ(
      line(Kind::kPacketLost),
      "{\"time\":12.346,\"name\":\"recovery:packet_lost\",\"data\":{\"session\":7,\"subflow\":1,"
      "\"packet_number\":9,\"loss_rate\":0.25}}\n");
  EXPECT_EQ(
      line(Kind::kCopySent),
      "{\"time\":12.346,\"name\":\"recovery:copy_sent\",\"data\":{\"session\":7,\"subflow\":1,"
      "\"packet_number\":9,\"on_subflow\":2,\"on_packet_number\":11}}\n");
  EXPECT_EQ(line(Kind::kBlockStarted),
            "{\"time\":12.346,\"name\":\"recovery:block_started\",\"data\":{\"session\":7,"
            "\"block\":500,\"k\":30,"
            "\"m\":4,\"subflow\":1,\"loss_rate\":0.25}}\n");
  EXPECT_EQ(line(Kind::kParitySent),
            "{\"time\":12.346,\"name\":\"recovery:parity_sent\",\"data\":{\"session\":7,\"block\":"
            "500,\"k\":30,"
            "\"m\":4,\"index\":3,\"on_subflow\":2,\"on_packet_number\":11}}\n");
  EXPECT_EQ(line(Kind::kParityReceived),
            "{\"time\":12.346,\"name\":\"recovery:parity_received\",\"data\":{\"session\":7,"
            "\"block\":500,"
            "\"k\":30,\"m\":4,\"index\":3,\"on_subflow\":2,\"on_packet_number\":11}}\n");
  EXPECT_EQ(
      line(Kind::kBlockDecoded),
      "{\"time\":12.346,\"name\":\"recovery:block_decoded\",\"data\":{\"session\":7,\"block\":500,"
      "\"subflow\":1,\"packet_number\":9}}\n");
  EXPECT_EQ(line(Kind::kPacketRecovered),
            "{\"time\":12.346,\"name\":\"recovery:packet_recovered\",\"data\":{\"session\":7,"
            "\"subflow\":1,"
            "\"packet_number\":9}}\n");
}

TEST(TraceLine, TellsOfTheBeginAndTheEndOfAStream) {
  StreamTrace t{.time = kStart + 1500ms, .session = 7, .stream = StreamId(4), .isOwn = true};
  t.ends = {*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("[2001:db8::7]:443")};
  EXPECT_EQ(traceLine(t, kStart),
            "{\"time\":1500.0,\"name\":\"stream:opened\",\"data\":{\"session\":7,\"stream\":4,"
            "\"opened_by\":"
            "\"this\","
            "\"source\":\"10.0.0.1:50000\",\"destination\":\"[2001:db8::7]:443\"}}\n");
  t.hasEnded = true, t.isOwn = false, t.sentBytes = 100, t.receivedBytes = 2000,
  t.begun = kStart + 1s;
  t.firstByte = kStart + 1021ms;
  std::string ended =
      "{\"time\":1500.0,\"name\":\"stream:ended\",\"data\":{\"session\":7,\"stream\":4,\"opened_"
      "by\":"
      "\"peer\","
      "\"source\":\"10.0.0.1:50000\",\"destination\":\"[2001:db8::7]:443\",\"sent_bytes\":100,"
      "\"received_bytes\":2000,\"lasted_ms\":500.0,\"first_byte_ms\":21.0,\"end\":";
  EXPECT_EQ(traceLine(t, kStart), ended + "\"done\"}}\n");
  t.cause = StreamCause::kTimedOut;
  EXPECT_EQ(traceLine(t, kStart), ended + "\"timed_out\"}}\n");
}

TEST(TraceLine, EachKindHasANameOfItsOwn) {
  std::set<std::string> names;
  for (Kind kind : kKinds) names.insert(traceName(kind));
  EXPECT_EQ(names.size(), std::size(kKinds));
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("recovery:")) << name;
}

TEST_F(TraceWriterTest, WritesEveryEventInItsOrder) {
  {
    TraceWriter writer(openTraceFile(path_), kStart);
    for (PacketNumber pn{}; pn < 5000_pn; ++pn) writer.onTrace(event(Kind::kPacketLost, pn));
    TraceStatus s = settled(writer, 5000);
    EXPECT_TRUE(s.on);
    EXPECT_EQ(s.written, 5000u);
    EXPECT_EQ(s.dropped, 0u);
    EXPECT_EQ(s.problem, "");
  }
  std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 5001u);
  EXPECT_EQ(all[0]["name"], "recovery:trace_started");
  EXPECT_GT(all[0]["data"]["unix_ms"], 1.6e12);
  for (uint64_t pn = 0; pn < 5000; ++pn) ASSERT_EQ(all[pn + 1]["data"]["packet_number"], pn);
}

TEST_F(TraceWriterTest, EndWritesWhatWaits) {
  { TraceWriter(openTraceFile(path_), kStart).onTrace(event()); }
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(TraceWriterTest, SecondTraceIsAddedToTheFirst) {
  for (int i = 0; i < 2; ++i) TraceWriter(openTraceFile(path_), kStart).onTrace(event());
  EXPECT_EQ(lines().size(), 4u);
}

TEST_F(TraceWriterTest, EventsBeyondTheBoundAreDroppedAndTold) {
  {
    TraceWriter writer(openTraceFile(path_), kStart, 3000);
    for (int i = 0; i < 100; ++i) writer.onTrace(event());
    TraceStatus s = settled(writer, 100);
    EXPECT_EQ(s.written + s.dropped, 100u);
    EXPECT_GT(s.dropped, 0u);
    EXPECT_THAT(s.problem, HasSubstr("the trace has reached 3000 bytes"));
  }
  EXPECT_LE(fs::file_size(path_), 3000u);
  json last = lines().back();
  EXPECT_EQ(last["name"], "recovery:events_dropped");
  EXPECT_EQ(last["data"]["count"], 100);
}

// A flood of events that no thread can keep up with: memory stays limited, and every lost event is
// counted.
TEST_F(TraceWriterTest, FloodIsDroppedAndCounted) {
  const uint64_t many = 8 * TraceWriter::kMaxWaiting;
  TraceWriter writer(openTraceFile(path_), kStart);
  for (uint64_t i = 0; i < many; ++i) writer.onTrace(event());
  TraceStatus s = settled(writer, many);
  EXPECT_EQ(s.written + s.dropped, many);
  EXPECT_GT(s.dropped, 0u);
}

// A file-size limit simulates a full disk. A partly written line is completed when there is room
// again.
TEST_F(TraceWriterTest, FullDiskDropsEventsAndCutsNoLine) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    TraceWriter writer(openTraceFile(path_), kStart);
    for (PacketNumber pn{}; pn < 20_pn; ++pn) writer.onTrace(event(Kind::kPacketLost, pn));
    TraceStatus s = settled(writer, 20);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(s.written + s.dropped, 20u);
    EXPECT_GT(s.written, 0u);
    EXPECT_GT(s.dropped, 0u);
    EXPECT_NE(s.problem, "");
    EXPECT_EQ(fs::file_size(path_), 1000u) << "the test wants a line cut in the middle";
    writer.onTrace(event(Kind::kPacketLost, 99_pn));
    EXPECT_EQ(settled(writer, 21).problem, "");
  }
  signal(SIGXFSZ, handler);
  std::vector<json> all = lines();
  uint64_t told = 0, events = 0;
  for (const json& line : all) {
    ASSERT_FALSE(line.is_discarded());
    if (line["name"] == "recovery:events_dropped") told += line["data"]["count"].get<uint64_t>();
    if (line["name"] == "recovery:packet_lost") ++events;
  }
  EXPECT_EQ(told + events, 21u);
  EXPECT_EQ(all.back()["data"]["packet_number"], 99);
}

// A pipe that nobody reads simulates a disk that hangs.
TEST_F(TraceWriterTest, HangingFileHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  auto begin = std::chrono::steady_clock::now();
  {
    TraceWriter writer(UniqueFd(ends[1]), kStart);
    for (size_t i = 0; i < 4 * TraceWriter::kMaxWaiting; ++i) writer.onTrace(event());
    EXPECT_GT(writer.status().dropped, 0u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  // Reads the pipe empty, so that the writer's thread can end.
  std::vector<char> room(1 << 20);
  while (read(reader.get(), room.data(), room.size()) > 0) {
  }
}

TEST_F(TraceWriterTest, OpensRegularFilesOnly) {
  EXPECT_THAT(openError(folder_ / "missing" / "t"),
              HasSubstr("No such file or directory; name a file in a"));
  EXPECT_THAT(openError(folder_), HasSubstr("Is a directory"));
  EXPECT_THAT(openError("/dev/null"), HasSubstr("it is no regular file"));
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_NE(openError(folder_ / "fifo"), "") << "does not wait for a reader";
  EXPECT_EQ(openError(path_), "");
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0137, 0u) << "not for others";
}

TEST_F(TraceWriterTest, FilesOfOthersMustBeRegularAndWritable) {
  UniqueFd good = openTraceFile(path_);
  EXPECT_EQ(traceFileProblem(good.get()), "");
  UniqueFd readOnly(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(traceFileProblem(readOnly.get()), "it is open for reading only");
  UniqueFd device(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(traceFileProblem(device.get()), "it is no regular file");
  EXPECT_NE(traceFileProblem(-1), "");
}

}  // namespace
}  // namespace braid::trace_writer_test
