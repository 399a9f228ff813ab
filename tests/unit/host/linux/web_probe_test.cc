// What of a web server's answer counts. Strangers write it.

#include "host/linux/web_probe.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "host/linux/sockaddr.h"
#include "host/linux/web_answer.h"
#include "host/system.h"

namespace braid::web_probe_test {
namespace {

TEST(WebAnswer, HasStatusAndLocation) {
  WebAnswer answer = readWebAnswer(
      "HTTP/1.1 302 Found\r\nServer: portal\r\nLOCATION:  http://10.0.0.1/login?x=1 \r\n\r\nbody");
  EXPECT_EQ(answer.status, 302u);
  EXPECT_EQ(answer.location, "http://10.0.0.1/login?x=1");
  answer = readWebAnswer("HTTP/1.0 200 OK\nContent-Length: 0\n\nLocation: http://no/\n");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.location, "") << "it stands in the body";
  EXPECT_EQ(readWebAnswer("HTTP/1.1 511").status, 0u) << "the line is not whole";
  EXPECT_EQ(readWebAnswer("HTTP/1.1 511 ").status, 511u);
}

TEST(WebAnswer, HeadMayEndWithLineFeedsAlone) {
  EXPECT_TRUE(hasWholeHead("HTTP/1.1 200 OK\r\n\r\n"));
  EXPECT_TRUE(hasWholeHead("HTTP/1.1 200 OK\n\nbody"));
  EXPECT_FALSE(hasWholeHead("HTTP/1.1 200 OK\r\nServer: x\r\n"));
}

// What has come by the timeout is judged.
TEST(WebAnswer, OfALineThatIsCutOffCountsNothing) {
  WebAnswer answer = readWebAnswer("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.");
  EXPECT_EQ(answer.status, 302u);
  EXPECT_EQ(answer.location, "");
  EXPECT_EQ(readWebAnswer("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n").location,
            "http://10.0.0.1/");
}

/// A web server on the loopback interface that sends something and waits.
TEST(WebProbe, JudgesWhatWasReadByTheTimeout) {
  Loop loop;
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  SocketAddress local{};
  const Address server = *Address::parse("127.0.0.99");
  socklen_t length = toSocketAddress({server, 80}, local);
  int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), &local.any, length) != 0) GTEST_SKIP() << "port 80 is not ours";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  std::optional<UniqueFd> client;
  IoWatcher watcher(loop, listener.get(), [&] {
    if (client) return;
    client.emplace(::accept(listener.get(), nullptr, nullptr));
    const std::string text = "HTTP/1.1 511 Log in\r\nServer: slow\r\n";
    EXPECT_EQ(::send(client->get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  });
  std::vector<WebAnswer> answers;
  LinuxWebProbe probe(loop, [&](const WebAnswer& a) { answers.push_back(a); });
  LookupWay way;
  way.uplink = "dsl";
  way.interface = "lo";
  way.v4 = *Address::parse("127.0.0.7");
  probe.request(way, server);
  probe.request(way, *Address::parse("127.0.0.98"));
  Timer timeout(loop, [&] { FAIL() << "no answer"; });
  timeout.arm(monotonicNow() + 20s);
  while (answers.size() < 2 && timeout.deadline() != kNever) loop.runOnce(true);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].server, *Address::parse("127.0.0.98")) << "it refuses at once";
  EXPECT_EQ(answers[0].status, 0u);
  EXPECT_EQ(answers[1].way, way);
  EXPECT_EQ(answers[1].server, server);
  EXPECT_EQ(answers[1].status, 511u);
}

TEST(WebAnswer, OfOtherProtocolsIsNone) {
  for (const char* text : {"", "HTTP/1.", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200 OK\r\n",
                           "HTTP/1.1 abc no\r\n", "HTTP/1.1 -20 no\r\n", "HTTP/1.1 0200 OK\r\n"})
    EXPECT_EQ(readWebAnswer(text).status, 0u) << text;
}

TEST(WebAnswer, LeavesOutALocationThatIsNotPlain) {
  auto location = [](const std::string& value) {
    return readWebAnswer("HTTP/1.1 302 Found\r\nLocation: " + value + "\r\n\r\n").location;
  };
  EXPECT_EQ(location("http://a/\x1b[2J"), "");
  EXPECT_EQ(location("http://a/b c"), "");
  EXPECT_EQ(location(std::string(513, 'a')), "");
  EXPECT_EQ(location(std::string(512, 'a')).size(), 512u);
}

}  // namespace
}  // namespace braid::web_probe_test
