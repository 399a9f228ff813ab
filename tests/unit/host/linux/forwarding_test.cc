#include "host/linux/forwarding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::forwarding_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ForwardingNote, NamesTheInterfacesThatForwarded) {
  EXPECT_THAT(Forwarding::forwardersIn("1 lan0 /wifi0 br-lan.5"), ElementsAre("lan0", "br-lan.5"));
  EXPECT_THAT(Forwarding::forwardersIn("- /wifi0"), IsEmpty());
  EXPECT_THAT(Forwarding::forwardersIn(""), IsEmpty());
}

TEST(ForwardingNote, AWordOfItIsNoPath) {
  EXPECT_THAT(Forwarding::forwardersIn("0 ../../../kernel . .. a/b lan0 longer-than-a-name"),
              ElementsAre("lan0"));
}

}  // namespace
}  // namespace braid::forwarding_test
