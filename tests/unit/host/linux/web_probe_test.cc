// What of a web server's answer counts. Strangers write it.

#include "host/linux/web_probe.h"

#include <gtest/gtest.h>

#include <string>

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
