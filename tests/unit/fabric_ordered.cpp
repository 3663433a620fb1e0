#include "fabric/ordered.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tonari::fabric {
namespace {

constexpr Ordered<struct LyingWire>::Windows windows{.requests = 4, .replies = 4};
constexpr int peer = 1;

/// A wire that accepts every head, and delivers the heads that the test lets the peer send.
struct LyingWire {
  std::vector<Head> arrived;

  static Status send(int, const Head&, Lane) noexcept { return Status::ok; }
  template <class Handle>
  std::size_t poll(std::size_t, Handle&& handle) noexcept {
    for (const Head& head : arrived) handle(head);
    arrived.clear();
    return 0;
  }
  static bool gone(int) noexcept { return false; }
};

/// A rank that has sent a given number of requests.
struct OrderedCredit : testing::Test {
  std::uint64_t send_until_full() {
    std::uint64_t sent = 0;
    while (sent < 100 && ordered.send(peer, Head{}, Lane::request) == Status::ok) ++sent;
    return sent;
  }
  void take(Credit credit) {
    Head head{};
    head.kind = Kind::credit;
    head.source = peer;
    head.set(credit);
    wire.arrived.push_back(head);
    ordered.poll(1, [](const Head&) noexcept {});
  }

  LyingWire wire;
  Ordered<LyingWire> ordered{wire, 2, 0, windows};
};

TEST_F(OrderedCredit, MakesRoomForAsManyHeadsAsItNames) {
  EXPECT_EQ(send_until_full(), 4U);

  take({.requests = 3, .replies = 0});

  EXPECT_EQ(send_until_full(), 3U);
  EXPECT_EQ(ordered.refused(), 0U);
}

TEST_F(OrderedCredit, IsRefusedForMoreHeadsThanWereSent) {
  EXPECT_EQ(send_until_full(), 4U);

  take({.requests = 6, .replies = 0});
  take({.requests = 4, .replies = 2});
  take({.requests = ~std::uint64_t{0}, .replies = 0});

  EXPECT_EQ(ordered.refused(), 3U);
  EXPECT_EQ(send_until_full(), 0U);
  take({.requests = 4, .replies = 0});
  EXPECT_EQ(send_until_full(), 4U);
}

TEST_F(OrderedCredit, MayComeBeforeItsHeadIsCounted) {
  EXPECT_EQ(send_until_full(), 4U);

  take({.requests = 5, .replies = 1});

  EXPECT_EQ(ordered.refused(), 0U);
  EXPECT_EQ(send_until_full(), 5U);
}

}  // namespace
}  // namespace tonari::fabric
