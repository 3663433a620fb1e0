#include "fabric/head.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace tonari::fabric {
namespace {

using Bytes = std::array<std::uint8_t, head_bytes>;

Bytes bytes_of(const Head& head) {
  Bytes bytes;
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

TEST(FabricHead, LayoutIsPinnedByteByByte) {
  Head head{};
  head.publish = 0x0102;
  head.kind = HeadKind{0x67};
  head.inline_bytes = 5;
  head.source = 0x11121314;
  head.context = 0x21222324;
  head.tag = 0x31323334;
  std::array<std::byte, inline_bytes_max> most;
  most.fill(std::byte{0xee});
  head.set(most);

  Bytes expected{0x02, 0x01, 0x67, 0x05, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31};
  std::fill(expected.begin() + envelope_bytes, expected.end(), std::uint8_t{0xee});
  EXPECT_EQ(bytes_of(head), expected);
}

TEST(FabricHead, LayoutOfTheTailIsPinned) {
  Head head{};
  head.set(Tail{.bytes = 0x0807060504030201, .place = 0x1817161514131211});

  Bytes expected{};
  for (std::uint8_t i = 0; i < 8; ++i) {
    expected[envelope_bytes + i] = static_cast<std::uint8_t>(1 + i);
    expected[envelope_bytes + 8 + i] = static_cast<std::uint8_t>(0x11 + i);
  }
  EXPECT_EQ(bytes_of(head), expected);
}

TEST(FabricHead, KindTellsProtocolAndTail) {
  constexpr HeadKind plain{KindNumber<Protocol::share>::plain(31)};
  EXPECT_EQ(plain.value, 0x9f);
  EXPECT_EQ(plain.protocol(), Protocol::share);
  EXPECT_FALSE(plain.has_tail());

  constexpr HeadKind with_tail{KindNumber<Protocol::window>::with_tail(7)};
  EXPECT_EQ(with_tail.value, 0x67);
  EXPECT_EQ(with_tail.protocol(), Protocol::window);
  EXPECT_TRUE(with_tail.has_tail());
}

TEST(FabricHead, KindsOfTheFabricKeepTheirNumbers) {
  EXPECT_EQ(HeadKind(Kind::rank_leaves).value, 0xc0);
  EXPECT_EQ(HeadKind(Kind::rank_full).value, 0xc1);
  EXPECT_EQ(HeadKind(Kind::rank_watches).value, 0xc2);
  EXPECT_EQ(HeadKind(Kind::rank_died).value, 0xc3);
  EXPECT_EQ(HeadKind(Kind::credit).value, 0xc4);
}

}  // namespace
}  // namespace tonari::fabric
