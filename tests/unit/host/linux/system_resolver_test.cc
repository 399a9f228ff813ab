#include "host/linux/system_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace braid::system_resolver_test {
namespace {

using testing::Contains;
using testing::IsEmpty;

class SystemResolverTest : public testing::Test {
 protected:
  void runUntil(size_t results) {
    Timer timeout(loop_, [&] { FAIL() << "no answer"; });
    timeout.arm(monotonicNow() + 20s);
    while (results_.size() < results && timeout.deadline() != kNever) loop_.runOnce(true);
  }
  Loop loop_;
  std::map<HostPort, std::vector<Endpoint>> results_;
  SystemResolver resolver_{
      loop_, [this](const HostPort& n, const std::vector<Endpoint>& e) { results_[n] = e; }};
};

TEST_F(SystemResolverTest, GivesEachAddressOnceWithThePort) {
  resolver_.request({"localhost", 4433});
  resolver_.request({"192.0.2.7", 5000});
  runUntil(2);
  EXPECT_THAT((results_[{"localhost", 4433}]), Contains(*Endpoint::parse("127.0.0.1:4433")));
  EXPECT_THAT((results_[{"192.0.2.7", 5000}]),
              testing::ElementsAre(*Endpoint::parse("192.0.2.7:5000")));
}

TEST_F(SystemResolverTest, WhatCannotBeResolvedGivesNothing) {
  HostPort impossible{std::string(64, 'x'),
                      1};  // a label has 63 bytes at most (RFC 1035 section 2.3.4)
  resolver_.request(impossible);
  runUntil(1);
  EXPECT_THAT(results_.at(impossible), IsEmpty());
}

TEST_F(SystemResolverTest, MayBeDestroyedDuringALookup) {
  SystemResolver other(loop_, [](const HostPort&, const std::vector<Endpoint>&) { FAIL(); });
  other.request({"localhost", 1});
}

}  // namespace
}  // namespace braid::system_resolver_test
