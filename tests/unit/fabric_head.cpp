#include "fabric/head.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tonari::fabric {
namespace {

using Bytes = std::array<std::uint8_t, head_bytes>;

Bytes bytes_of(const Head& head) {
  Bytes bytes;
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}
// The envelope as below, then `payload`, then zeros.
Bytes expected(std::uint8_t kind, std::initializer_list<std::uint8_t> payload) {
  Bytes bytes{0x02, 0x01, kind, 0x05, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31};
  std::copy(payload.begin(), payload.end(), bytes.begin() + envelope_bytes);
  return bytes;
}
template <class Body>
Bytes sent(Kind kind, const Body& body) {
  Head head{};
  head.publish = 0x0102;
  head.kind = kind;
  head.inline_bytes = 5;
  head.source = 0x11121314;
  head.context = 0x21222324;
  head.tag = 0x31323334;
  head.set(body);
  return bytes_of(head);
}

TEST(FabricHead, InlineMessageIsPinned) {
  EXPECT_EQ(sent(Kind::message_inline, std::array<std::uint8_t, 5>{'h', 'e', 'l', 'l', 'o'}),
            expected(1, {'h', 'e', 'l', 'l', 'o'}));
}

TEST(FabricHead, TailIsPinned) {
  EXPECT_EQ(sent(Kind::message_bulk, Tail{.bytes = 0x0807060504030201, .place = 0x1817161514131211}),
            expected(2, {1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}));
}

TEST(FabricHead, AnnouncedIsPinned) {
  EXPECT_EQ(sent(Kind::message_announced, Announced{.bytes = 0x0807060504030201,
                                                    .address = 0x1817161514131211,
                                                    .ticket = 0x24232221,
                                                    .generation = 0x34333231}),
            expected(3, {1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14,
                         0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34}));
}

TEST(FabricHead, GrantIsPinned) {
  EXPECT_EQ(
      sent(Kind::grant, Grant{.ticket = 0x04030201,
                              .generation = 0x14131211,
                              .address = 0x2827262524232221,
                              .bytes = 0x3837363534333231,
                              .road = Road::pieces,
                              .chunk_bytes = 0x44434241}),
      expected(6, {1,    2,    3,    4,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                   0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 2,    0,    0,    0,    0x41, 0x42, 0x43, 0x44}));
}

TEST(FabricHead, PieceIsPinned) {
  EXPECT_EQ(
      sent(Kind::piece, Piece{.ticket = 0x04030201,
                              .generation = 0x14131211,
                              .offset = 0x2827262524232221,
                              .place = 0x3837363534333231,
                              .bytes = 0x4847464544434241}),
      expected(4, {1,    2,    3,    4,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                   0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48}));
}

TEST(FabricHead, OutcomeIsPinned) {
  const Outcome outcome{.ticket = 0x04030201, .generation = 0x14131211, .status = 6, .reserved = 0};
  EXPECT_EQ(sent(Kind::finish, outcome), expected(5, {1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 6, 0, 0, 0}));
  EXPECT_EQ(sent(Kind::done, outcome), expected(7, {1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 6, 0, 0, 0}));
}

TEST(FabricHead, AllThatIsNotAnEnvelopeIsPayload) {
  std::array<std::uint8_t, inline_bytes_max> most;
  most.fill(0xee);
  Bytes all = expected(1, {});
  std::fill(all.begin() + envelope_bytes, all.end(), std::uint8_t{0xee});

  EXPECT_EQ(sent(Kind::message_inline, most), all);
}

TEST(FabricHead, KindsKeepTheirNumbersAndLayers) {
  EXPECT_EQ(static_cast<int>(Kind::late), 8);
  EXPECT_EQ(static_cast<int>(Kind::kept), 63);
  EXPECT_EQ(layer_of(Kind::kept), 0U);
  EXPECT_EQ(layer_of(Kind{64}), 1U);
  EXPECT_EQ(layer_of(Kind{255}), 3U);
}

}  // namespace
}  // namespace tonari::fabric
