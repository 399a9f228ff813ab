#include "host/linux/link_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "host/linux/sockaddr.h"

namespace braid::link_resolver_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Address ip(const char* text) {
  return *Address::parse(text);
}

/// A DNS server on the loopback interface that knows an IPv4 address for every name, or several in
/// a row.
class Server {
 public:
  Server(Loop& loop, const char* address) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    SocketAddress local;
    socklen_t length = toSocketAddress({ip(address), 0}, local);
    EXPECT_EQ(::bind(fd_.get(), &local.any, length), 0);
    length = sizeof local;
    EXPECT_EQ(::getsockname(fd_.get(), &local.any, &length), 0);
    port_ = fromSocketAddress(local).port;
    watcher_ = std::make_unique<IoWatcher>(loop, fd_.get(), [this] { onQuestion(); });
  }
  uint16_t port() const { return port_; }
  /// Answers with this address from now on; nullopt: not at all.
  void know(std::optional<Address> address) { answer_ = address; }
  /// Answers with this number of addresses: the known one and those that follow it.
  void answerWith(uint8_t addresses) { addresses_ = addresses; }
  /// From where it was asked.
  const std::vector<std::string>& clients() const { return clients_; }

 private:
  void onQuestion() {
    std::array<uint8_t, 512> m;
    SocketAddress from;
    socklen_t length = sizeof from;
    ssize_t size = ::recvfrom(fd_.get(), m.data(), m.size(), 0, &from.any, &length);
    if (size < 17) return;
    clients_.push_back(fromSocketAddress(from).address.toString());
    if (!answer_) return;
    size_t end = 12;  // behind the header (RFC 1035 section 4.1.1)
    while (m[end] != 0) end += m[end] + 1u;
    end += 5;
    bool wantsV4 = m[end - 3] == 1;  // QTYPE A
    std::vector<uint8_t> out(m.begin(), m.begin() + static_cast<long>(end));
    out[2] = 0x81;  // a response
    out[3] = 0x80;
    out[7] = wantsV4 ? addresses_ : 0;        // ANCOUNT
    out[8] = out[9] = out[10] = out[11] = 0;  // no further sections
    for (uint8_t i = 0; wantsV4 && i < addresses_; ++i) {
      for (uint8_t b : {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4}) out.push_back(b);
      out.insert(out.end(), answer_->bytes.begin(), answer_->bytes.begin() + 4);
      out.back() = static_cast<uint8_t>(out.back() + i);
    }
    ::sendto(fd_.get(), out.data(), out.size(), 0, &from.any, length);
  }

  UniqueFd fd_;
  uint16_t port_ = 0;
  uint8_t addresses_ = 1;
  std::optional<Address> answer_ = ip("203.0.113.1");
  std::vector<std::string> clients_;
  std::unique_ptr<IoWatcher> watcher_;
};

class LinkResolverTest : public testing::Test {
 protected:
  LinkResolverTest() {
    way_.uplink = "dsl";
    way_.interface = "lo";
    way_.link = 1;
    way_.v4 = ip("127.0.0.1");
    way_.resolvers = {ip("127.0.0.5")};
  }
  void SetUp() override {
    const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const uint32_t mark = 0;
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0 && errno == ENOPROTOOPT)
      GTEST_SKIP() << "sockets have no mark here (qemu-user)";
  }
  template <typename Condition>
  void runUntil(Condition&& isMet) {
    Timer timeout(loop_, [&] { FAIL() << "no answer"; });
    timeout.arm(monotonicNow() + 20s);
    while (!isMet() && timeout.deadline() != kNever) loop_.runOnce(true);
  }
  void runUntilResults(size_t number) {
    runUntil([&] { return results_.size() >= number; });
  }
  Loop loop_;
  Server server_{loop_, "127.0.0.5"};
  std::vector<LookupResult> results_;
  LookupWay way_;
  LinkResolver resolver_{loop_, [this](const LookupResult& r) { results_.push_back(r); },
                         LinkResolverFiles("/nonexistent"), server_.port()};
};

TEST_F(LinkResolverTest, AsksTheServerOfTheUplinkFromTheUplinksAddress) {
  way_.v4 = ip("127.0.0.7");
  resolver_.request(way_, {"hub.example.net", 4433});
  EXPECT_THAT(results_, IsEmpty()) << "no result comes from within the call";
  runUntilResults(1);
  EXPECT_EQ(results_[0].uplink, "dsl");
  EXPECT_EQ(results_[0].name, (HostPort{"hub.example.net", 4433}));
  EXPECT_THAT(results_[0].found, ElementsAre(*Endpoint::parse("203.0.113.1:4433")));
  EXPECT_THAT(results_[0].asked.servers, ElementsAre(ip("127.0.0.5")));
  EXPECT_EQ(results_[0].asked.source, "configuration");
  EXPECT_THAT(server_.clients(), testing::Each("127.0.0.7"));
}

// A path is tried to each address, so a server that lies must not cost more than this.
TEST_F(LinkResolverTest, OfManyAddressesTheFirstEightOfAFamilyCount) {
  server_.answerWith(29);
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(1);
  ASSERT_EQ(results_[0].found.size(), 8u);
  EXPECT_EQ(results_[0].found.front(), *Endpoint::parse("203.0.113.1:4433"));
  EXPECT_EQ(results_[0].found.back(), *Endpoint::parse("203.0.113.8:4433"));
}

TEST_F(LinkResolverTest, WithoutAFreeDescriptorALookupCanBegin) {
  LinkResolver& resolver = resolver_;  // a sanitizer looks at the fixture by descriptors
  const LookupWay way = way_;
  const HostPort name{"hub.example.net", 4433};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_NO_THROW(resolver.request(way, name));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  runUntilResults(1);
  resolver_.request(way_, name);
  runUntilResults(2);
  EXPECT_FALSE(results_[1].found.empty());
}

TEST_F(LinkResolverTest, TheHostsFileIsReadFirst) {
  resolver_.request(way_, {"localhost", 4433});
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, Contains(*Endpoint::parse("127.0.0.1:4433")));
}

// The name of a captive portal's page is the portal's own word.
TEST_F(LinkResolverTest, AStrictLookupAsksTheServersOfTheUplinkAlone) {
  way_.strict = true;
  resolver_.request(way_, {"hub.example.net", 80});
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, ElementsAre(*Endpoint::parse("203.0.113.1:80")));
  way_.resolvers.clear();
  resolver_.request(way_, {"localhost", 80});
  runUntilResults(2);
  EXPECT_THAT(results_[1].found, IsEmpty()) << "the hosts file has it";
  EXPECT_THAT(results_[1].problem, HasSubstr("no DNS server is known"));
  EXPECT_FALSE(results_[1].reached);
}

TEST_F(LinkResolverTest, SaysWhyThereIsNoAnswer) {
  HostPort impossible{std::string(64, 'x'), 1};  // a label has 63 bytes at most (RFC 1035)
  resolver_.request(way_, impossible);
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, IsEmpty());
  EXPECT_NE(results_[0].problem, "");

  way_.resolvers = {ip("127.0.0.6")};  // nothing listens there
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(2);
  EXPECT_THAT(results_[1].problem, HasSubstr("no server can be reached"));

  way_.resolvers.clear();
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(3);
  EXPECT_THAT(results_[2].problem, HasSubstr("no DNS server is known"));
}

TEST_F(LinkResolverTest, AServerOfAFamilyThatTheUplinkLacksIsNotAsked) {
  way_.v4 = {};
  way_.v6 = ip("::1");
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, IsEmpty());
  EXPECT_THAT(server_.clients(), IsEmpty());
}

TEST_F(LinkResolverTest, AnInterfaceThatIsGoneIsNotPassedBy) {
  way_.interface = "gone0";
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, IsEmpty());
  EXPECT_THAT(server_.clients(), IsEmpty());
}

TEST_F(LinkResolverTest, ALookupByAnotherWayReplacesTheFirst) {
  server_.know(std::nullopt);
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntil([&] { return !server_.clients().empty(); });
  server_.know(ip("203.0.113.2"));
  resolver_.request(way_, {"hub.example.net", 4433});  // the same: in progress
  way_.v4 = ip("127.0.0.8");
  resolver_.request(way_, {"hub.example.net", 4433});
  runUntilResults(1);
  EXPECT_THAT(results_[0].found, ElementsAre(*Endpoint::parse("203.0.113.2:4433")));
  EXPECT_THAT(server_.clients(), Contains("127.0.0.8"));
}

TEST_F(LinkResolverTest, MayBeDestroyedDuringALookup) {
  server_.know(std::nullopt);
  LinkResolver other(
      loop_, [](const LookupResult&) { FAIL(); }, LinkResolverFiles("/nonexistent"),
      server_.port());
  other.request(way_, {"hub.example.net", 4433});
  loop_.runOnce(false);
}

}  // namespace
}  // namespace braid::link_resolver_test
