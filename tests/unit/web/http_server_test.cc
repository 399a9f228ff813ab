#include "web/http_server.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <list>

#include "gateway/dtls/identity.h"
#include "tests/temporary_folder.h"
#include "tests/unit/web/fake_daemon.h"

namespace braid::http_server_test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const Endpoint kAnyPort{*Address::parse("127.0.0.1"), 0};

/// The server and its clients, in one loop of one thread.
struct HttpServerTest : testing::Test {
  HttpServerTest() { daemon.sayAll(); }
  void start(const HttpLimits& limits = {}) {
    server.emplace(loop, HttpPlaces{{kAnyPort}}, nullptr, site, limits);
  }
  void run(Duration time = 20ms) {
    loop.restart();
    loop.run_for(std::chrono::duration_cast<std::chrono::milliseconds>(time));
  }
  tcp::socket& connect() {
    tcp::socket& socket = sockets.emplace_back(loop);
    socket.connect({asio::ip::make_address("127.0.0.1"), server->ports()[0]});
    socket.non_blocking(true);
    run(5ms);
    return socket;
  }
  static void say(tcp::socket& socket, const std::string& text) {
    error_code ignored;
    asio::write(socket, asio::buffer(text), ignored);
  }
  /// The received text, with "EOF" at the end when the server has closed.
  std::string heard(tcp::socket& socket, Duration time = 20ms) {
    run(time);
    std::string out;
    std::vector<char> room(1 << 20);
    error_code error;
    while (true) {
      size_t got = socket.read_some(asio::buffer(room), error);
      out.append(room.data(), got);
      if (error == asio::error::would_block) return out;
      if (error) return out + "EOF";
      run(2ms);
    }
  }
  std::string ask(const std::string& head) {
    tcp::socket& socket = connect();
    say(socket, head);
    return heard(socket);
  }

  asio::io_context loop{1};
  FakeDaemon daemon;
  Answers answers{daemon, [] { return Time{}; }};
  Site site{Access(), answers};
  std::optional<HttpServer> server;
  std::list<tcp::socket> sockets;
};

TEST_F(HttpServerTest, ServesSeveralRequestsOnOneConnection) {
  start();
  tcp::socket& socket = connect();
  for (int i = 0; i < 3; ++i) {
    say(socket, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    std::string reply = heard(socket);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(reply, HasSubstr("\nbraid_up 1\n"));
  }
  say(socket, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(heard(socket), EndsWith("</html>\nEOF"));
}

// The process has no descriptor left while clients wait at both addresses.
TEST_F(HttpServerTest, AcceptsAgainAtEveryAddressOnceThereAreDescriptors) {
  server.emplace(loop, HttpPlaces{{kAnyPort, kAnyPort}}, nullptr, site, HttpLimits{});
  // A sanitizer needs a descriptor when it sees a type for the first time: that of timers, here.
  asio::steady_timer first(loop, 1ms);
  first.async_wait([](error_code) {});
  run();
  for (uint16_t port : server->ports()) {
    tcp::socket& socket = sockets.emplace_back(loop, tcp::v4());
    socket.non_blocking(true);
    error_code inProgress;
    socket.connect({asio::ip::make_address("127.0.0.1"), port}, inProgress);
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  run(200ms);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  run(1100ms);  // the pause is over
  for (tcp::socket& socket : sockets) {
    say(socket, "GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    EXPECT_THAT(heard(socket), StartsWith("HTTP/1.1 200 "));
  }
}

TEST_F(HttpServerTest, RequestsMayComeInPiecesAndTogether) {
  start();
  tcp::socket& socket = connect();
  for (char c : std::string("GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) {
    say(socket, std::string(1, c));
    run(1ms);
  }
  EXPECT_THAT(heard(socket), StartsWith("HTTP/1.1 200 "));
  std::string one = "GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  say(socket, one + one + one);
  std::string replies = heard(socket, 50ms);
  EXPECT_EQ(std::count(replies.begin(), replies.end(), '<') % 3, 0);
  size_t found = 0;
  for (size_t at = 0; (at = replies.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++found;
  EXPECT_EQ(found, 3u);
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  start();
  std::string head = ask("HEAD /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  std::string get = ask("GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(head, get.substr(0, get.find("\r\n\r\n") + 4));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsRefused) {
  start();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(
      ask("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello"),
      testing::AnyOf(StartsWith("HTTP/1.1 413 "), StartsWith("HTTP/1.1 405 "), testing::Eq("EOF")));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  for (const char* odd : {"hello\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                          "\x16\x03\x01\x02", "GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n"}) {
    std::string reply = ask(odd);
    EXPECT_TRUE(reply == "EOF" || reply == "" || reply.starts_with("HTTP/1.1 400 "))
        << odd << reply;
  }
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "))
      << "others are served";
}

TEST_F(HttpServerTest, WhoIsRefusedKeepsNoPlace) {
  Site guarded{Access({}, "correct-horse-battery"), answers};
  server.emplace(loop, HttpPlaces{{kAnyPort}}, nullptr, guarded, HttpLimits{.clients = 2});
  for (const char* head :
       {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"}) {
    std::string reply = ask(head);
    EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(reply, EndsWith("EOF"));
    EXPECT_EQ(server->clients(), 0u);
  }
  const std::string allowed =
      "Host: 127.0.0.1\r\nAuthorization: Bearer correct-horse-battery\r\n\r\n";
  EXPECT_THAT(ask("GET /%zz?peer=%z HTTP/1.1\r\n" + allowed), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(server->clients(), 0u);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n" + allowed), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server->clients(), 1u);
}

TEST_F(HttpServerTest, ConnectionsAreBoundedAndTheOneThatWasSilentForLongestGoes) {
  const std::string request = "GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  start({.clients = 3});
  tcp::socket &first = connect(), &second = connect(), &third = connect();
  say(first, request);
  EXPECT_THAT(heard(first), StartsWith("HTTP/1.1 200 "));
  tcp::socket& fourth = connect();
  EXPECT_EQ(server->clients(), 3u);
  EXPECT_EQ(heard(second), "EOF");
  for (tcp::socket* socket : {&first, &third, &fourth}) {
    say(*socket, request);
    EXPECT_THAT(heard(*socket), StartsWith("HTTP/1.1 200 "));
  }
  fourth.close();
  run();
  EXPECT_EQ(server->clients(), 2u);
}

TEST_F(HttpServerTest, WhoWaitsForAnAnswerIsNotPushedOut) {
  daemon.answersAtOnce = false;
  start({.clients = 2});
  tcp::socket &first = connect(), &second = connect();
  for (tcp::socket* socket : {&first, &second})
    say(*socket, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  run();
  EXPECT_EQ(heard(connect()), "EOF");
  EXPECT_EQ(server->clients(), 2u);
  daemon.answer();
  EXPECT_THAT(heard(first), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(heard(second), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, WhoSaysNothingOrSpeaksSlowlyIsGivenUp) {
  start({.request = 100ms});
  tcp::socket& silent = connect();
  tcp::socket& slow = connect();
  for (int i = 0; i < 8; ++i) {
    say(slow, "G");
    run(40ms);
  }
  EXPECT_EQ(heard(silent, 50ms), "EOF");
  EXPECT_THAT(heard(slow), EndsWith("EOF"));
  EXPECT_EQ(server->clients(), 0u);
}

TEST_F(HttpServerTest, WhoDoesNotReadHoldsNobodyUpAndIsGivenUp) {
  daemon.says("status")["gateway"]["device"] = std::string(20 << 20, 'x');
  start({.response = 200ms});
  tcp::socket& deaf = connect();
  say(deaf, "GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  run();
  EXPECT_THAT(ask("GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server->clients(), 2u);
  run(400ms);
  EXPECT_EQ(server->clients(), 1u);
}

TEST_F(HttpServerTest, ADaemonThatIsSilentHoldsOnlyItsAskersUp) {
  daemon.answersAtOnce = false;
  start({.response = 300ms});
  tcp::socket& asker = connect();
  say(asker, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(heard(asker), "");
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  daemon.answer();
  EXPECT_THAT(heard(asker), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ABrowserThatLeavesWhileTheDaemonThinksHarmsNobody) {
  daemon.answersAtOnce = false;
  start();
  say(connect(), "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  run();
  sockets.front().close();
  run();
  daemon.answer();
  run();
  EXPECT_EQ(server->clients(), 0u);
}

TEST_F(HttpServerTest, APortThatIsTakenIsNamed) {
  start();
  try {
    HttpServer second(loop, HttpPlaces{{{kAnyPort.address, server->ports()[0]}}}, nullptr, site);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot listen at 127.0.0.1:"));
    EXPECT_THAT(e.what(), HasSubstr("--listen"));
  }
}

/// What a server says at a Unix socket.
std::string askAt(asio::io_context& loop, const std::string& path) {
  asio::local::stream_protocol::socket client(loop);
  client.connect({path});
  std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
              reply;
  bool isDone = false;
  asio::async_write(client, asio::buffer(request), [&](error_code, size_t) {
    asio::async_read(client, asio::dynamic_buffer(reply), [&](error_code, size_t n) {
      reply.resize(n);
      isDone = true;
    });
  });
  loop.restart();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!isDone && std::chrono::steady_clock::now() < end)
    loop.run_one_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(isDone);
  return isDone ? reply : "";
}

TEST_F(HttpServerTest, AtAUnixSocketItServesWithoutTlsWhoItsFileLetsIn) {
  TemporaryFolder folder;
  const std::string path = folder.file("web.sock");
  const gid_t group = getegid();
  const ::group* named = getgrgid(group);
  ASSERT_NE(named, nullptr);
  generateIdentity(folder.file("k.key"), folder.file("c.crt"), "test");
  const HttpPlaces places{{kAnyPort}, {path}, named->gr_name};
  server.emplace(loop, places, makeTls(folder.file("c.crt"), folder.file("k.key")), site);
  EXPECT_EQ(server->ports().size(), 1u);
  struct stat made {};
  ASSERT_EQ(stat(path.c_str(), &made), 0);
  EXPECT_TRUE(S_ISSOCK(made.st_mode));
  EXPECT_EQ(made.st_mode & 07777, 0660u);
  EXPECT_EQ(made.st_gid, group);
  for (int i = 0; i < 2; ++i) {
    std::string reply = askAt(loop, path);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(reply, HasSubstr("\nbraid_up 1\n"));
  }
  run();
  EXPECT_EQ(server->clients(), 0u);
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HttpServerTest, AUnixSocketReplacesAStaleOneAndNothingElse) {
  TemporaryFolder folder;
  const std::string path = folder.file("web.sock");
  auto problem = [&](const HttpPlaces& places) {
    try {
      HttpServer second(loop, places, nullptr, site);
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  {
    asio::local::stream_protocol::acceptor died(loop, asio::local::stream_protocol::endpoint(path));
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  server.emplace(loop, HttpPlaces{{}, {path}}, nullptr, site);
  EXPECT_EQ(problem({{}, {path}}), "--listen unix:" + path +
                                       ": another daemon answers there; stop it first, or choose "
                                       "another path");
  EXPECT_THAT(askAt(loop, path), HasSubstr("\nbraid_up 1\n"));
  EXPECT_THAT(problem({{}, {folder.file("x.sock")}, "no-such-group-here"}),
              HasSubstr("no group 'no-such-group-here'"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("x.sock")));
  folder.write("text", "mine");
  EXPECT_THAT(problem({{}, {folder.file("text")}}), HasSubstr("something that is no socket"));
  EXPECT_THAT(problem({{}, {folder.file("none/x.sock")}}), HasSubstr("No such file"));
  EXPECT_THAT(problem({{}, {"/" + std::string(200, 'x')}}), HasSubstr("1 to 107 bytes"));
}

TEST_F(HttpServerTest, OverTlsItServesAndOldVersionsAndPlainTextAreRefused) {
  std::string name = (std::filesystem::temp_directory_path() / "braid-web-tls-XXXXXX").string();
  std::filesystem::path folder = mkdtemp(name.data());
  ASSERT_NO_THROW(
      generateIdentity((folder / "k.key").string(), (folder / "c.crt").string(), "test"));
  server.emplace(loop, HttpPlaces{{kAnyPort}}, makeTls(folder / "c.crt", folder / "k.key"), site);
  auto talk = [&](int most) {
    asio::ssl::context context(asio::ssl::context::tls_client);
    SSL_CTX_set_max_proto_version(context.native_handle(), most);
    SSL_CTX_set_security_level(context.native_handle(), 0);
    asio::ssl::stream<tcp::socket> client(loop, context);
    client.lowest_layer().connect({asio::ip::make_address("127.0.0.1"), server->ports()[0]});
    std::string request = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
                reply;
    client.async_handshake(asio::ssl::stream_base::client, [&](error_code error) {
      if (error) return;
      asio::async_write(client, asio::buffer(request), [&](error_code, size_t) {
        asio::async_read(client, asio::dynamic_buffer(reply), [](error_code, size_t) {});
      });
    });
    run(300ms);
    return reply;
  };
  EXPECT_THAT(talk(TLS1_3_VERSION), HasSubstr("\nbraid_up 1\n"));
  EXPECT_THAT(talk(TLS1_2_VERSION), HasSubstr("\nbraid_up 1\n"));
  EXPECT_EQ(talk(TLS1_1_VERSION), "");
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
              testing::Not(HasSubstr("HTTP/1.1")));
  EXPECT_THROW(makeTls(folder / "none", folder / "k.key"), std::runtime_error);
  ASSERT_NO_THROW(
      generateIdentity((folder / "other.key").string(), (folder / "other.crt").string(), "test"));
  EXPECT_THROW(makeTls(folder / "c.crt", folder / "other.key"), std::runtime_error);
  std::filesystem::permissions(folder / "k.key", std::filesystem::perms(0644));
  try {
    makeTls(folder / "c.crt", folder / "k.key");
    ADD_FAILURE();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("k.key: others than its owner can read it; run: chmod 600 "));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace braid::http_server_test
