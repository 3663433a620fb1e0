#include "message/heads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

namespace tonari::message {
namespace {

using fabric::Head;
using fabric::HeadKind;
using Payload = std::array<std::uint8_t, fabric::inline_bytes_max>;

template <class Body>
Payload sent(const Body& body) {
  Head head{};
  head.set(body);
  Payload payload;
  std::memcpy(payload.data(), head.payload.data(), payload.size());
  return payload;
}
// Returns `bytes`, padded with zeros.
Payload expected(std::initializer_list<std::uint8_t> bytes) {
  Payload payload{};
  std::ranges::copy(bytes, payload.begin());
  return payload;
}

TEST(MessageHeads, LayoutOfAnnouncedIsPinned) {
  EXPECT_EQ(sent(Announced{.bytes = 0x0807060504030201,
                           .address = 0x1817161514131211,
                           .ticket = {.index = 0x24232221, .generation = 0x34333231}}),
            expected({1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14,
                      0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34}));
}

TEST(MessageHeads, LayoutOfGrantIsPinned) {
  EXPECT_EQ(sent(Grant{.ticket = {.index = 0x04030201, .generation = 0x14131211},
                       .terms = {.address = 0x2827262524232221,
                                 .bytes = 0x3837363534333231,
                                 .road = Road::pieces,
                                 .chunk_bytes = 0x44434241}}),
            expected({1,    2,    3,    4,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 2,    0,    0,    0,    0x41, 0x42, 0x43, 0x44}));
}

TEST(MessageHeads, LayoutOfPieceIsPinnedAndBeginsWithItsTail) {
  const Piece piece{.bytes = 0x4847464544434241,
                    .place = 0x3837363534333231,
                    .offset = 0x2827262524232221,
                    .ticket = {.index = 0x04030201, .generation = 0x14131211}};
  EXPECT_EQ(sent(piece),
            expected({0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
                      0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 1,    2,    3,    4,    0x11, 0x12, 0x13, 0x14}));
}

TEST(MessageHeads, LayoutOfOutcomeIsPinned) {
  EXPECT_EQ(sent(Outcome{.ticket = {.index = 0x04030201, .generation = 0x14131211}, .status = 6, .reserved = 0}),
            expected({1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 6, 0, 0, 0}));
}

TEST(MessageHeads, KindsKeepTheirNumbers) {
  EXPECT_EQ(HeadKind(Kind::message_inline).value, 0x01);
  EXPECT_EQ(HeadKind(Kind::message_bulk).value, 0x22);
  EXPECT_EQ(HeadKind(Kind::message_announced).value, 0x03);
  EXPECT_EQ(HeadKind(Kind::piece).value, 0x24);
  EXPECT_EQ(HeadKind(Kind::finish).value, 0x05);
  EXPECT_EQ(HeadKind(Kind::grant).value, 0x06);
  EXPECT_EQ(HeadKind(Kind::done).value, 0x07);
  EXPECT_EQ(HeadKind(Kind::late).value, 0x28);
  EXPECT_EQ(HeadKind(Kind::kept).value, 0x1f);
}

}  // namespace
}  // namespace tonari::message
