// Datagrams of a batch that were decrypted before the session gets them. The result must be the
// same as when the session decrypts them itself, one after the other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::session_opening_test {
namespace {

using Result = std::optional<Drop>;

/// The parameter: whether batches are decrypted beforehand.
struct SessionOpening : test::RawPeerTest, testing::WithParamInterface<bool> {
  struct Arrival {
    DatagramHeader header;
    Packet bytes;
    CipherWork work{};
  };

  std::vector<Arrival> batch;

  SessionOpening() {
    start();
    prove();
  }
  Arrival& arrive(PacketNumber pn) {
    std::vector<uint8_t> ping = test::framesOf(PingFrame{});
    batch.push_back({peer->header(0_subflow, pn), peer->seal(0_subflow, pn, ping, pool)});
    return batch.back();
  }
  std::vector<Result> take() {
    unsigned lane = 0;
    for (Arrival& a : batch) {
      if (!GetParam()) break;
      a.work = hub->opening(a.header);
      if (a.work) a.work.open(a.bytes.span(), lane++ % Aead::kLanes);
    }
    std::vector<Result> results;
    for (Arrival& a : batch) {
      results.push_back(hub->onDatagram(a.header, home, Ecn::kNotEct, std::move(a.bytes), now,
                                        a.work ? &a.work : nullptr));
    }
    batch.clear();
    return results;
  }
};
INSTANTIATE_TEST_SUITE_P(Opened, SessionOpening, testing::Bool(),
                         [](const auto& p) { return p.param ? "before" : "inTurn"; });

TEST_P(SessionOpening, ABatchWithRepeatsDamageAndAChangeOfKeys) {
  arrive(next);
  arrive(next);
  arrive(next + 1).bytes.data()[kHeaderSize] ^= 1;
  arrive(next + 2);
  Arrival late = std::move(batch.back());
  batch.pop_back();
  ASSERT_TRUE(peer->rekey(now));
  arrive(next + 3);
  batch.push_back(std::move(late));
  arrive(next + 4);
  arrive(next + 3);
  EXPECT_THAT(take(),
              testing::ElementsAre(std::nullopt, Drop::kReplay, Drop::kBadSeal, std::nullopt,
                                   std::nullopt, std::nullopt, Drop::kReplay));
  EXPECT_EQ(status().keyEpoch, 1u);
}

TEST_P(SessionOpening, WhatCameAlreadyIsNotOpenedAgain) {
  arrive(next);
  EXPECT_THAT(take(), testing::ElementsAre(std::nullopt));
  EXPECT_FALSE(hub->opening(peer->header(0_subflow, next)));
  EXPECT_TRUE(hub->opening(peer->header(0_subflow, next + 1)));
  DatagramHeader strange = peer->header(0_subflow, next + 1);
  strange.generation = 2;
  EXPECT_FALSE(hub->opening(strange)) << "there are no keys of that generation";
}

// The session decides: a datagram that was decrypted with another packet number is rejected, and
// the keys stay valid.
TEST_P(SessionOpening, WorkOfAnotherDatagramIsRefused) {
  arrive(next);
  arrive(next + 1);
  CipherWork wrong = hub->opening(batch[0].header);
  wrong.open(batch[0].bytes.span(), 1);
  ASSERT_TRUE(wrong.good);
  EXPECT_EQ(
      hub->onDatagram(batch[1].header, home, Ecn::kNotEct, std::move(batch[1].bytes), now, &wrong),
      Drop::kBadSeal);
  EXPECT_EQ(
      hub->onDatagram(batch[0].header, home, Ecn::kNotEct, std::move(batch[0].bytes), now, &wrong),
      std::nullopt);
}

}  // namespace
}  // namespace braid::session_opening_test
