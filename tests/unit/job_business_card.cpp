#include "job/business_card.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

namespace tonari::job {
namespace {

BusinessCard on(std::string_view host) {
  BusinessCard rank;
  host.copy(rank.host.boot_id.data(), rank.host.boot_id.size());
  host.copy(rank.host_name.data(), rank.host_name.size());
  rank.host.page_bytes = 4096;
  return rank;
}

std::vector<std::byte> bytes_of(const BusinessCard& rank) {
  const auto bytes = std::as_bytes(std::span(&rank, 1));
  return {bytes.begin(), bytes.end()};
}

// Returns why rank 1 is refused in a job with rank 0.
std::string refusal_of(const std::vector<std::byte>& other) {
  try {
    read_business_cards(std::vector{bytes_of(on("a")), other});
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(BusinessCard, LayoutIsPinnedByteByByte) {
  BusinessCard rank = on("host");
  rank.pid = 0x01020304;
  rank.pid_namespace = 5;
  rank.listener.fill('l');
  rank.secret.fill(std::byte{9});
  const auto bytes = bytes_of(rank);

  const auto text = [&](std::size_t at, std::size_t length) {
    return std::string{reinterpret_cast<const char*>(bytes.data()) + at, length};
  };
  EXPECT_EQ(text(1, 6), "tonari");
  EXPECT_EQ(bytes[8], std::byte{business_card_version});
  EXPECT_EQ(bytes[12], std::byte{4});
  EXPECT_EQ(text(16, 5), std::string("host\0", 5));
  EXPECT_EQ(bytes[80], std::byte{5});
  EXPECT_EQ(text(88, 32), std::string(32, 'l'));
  EXPECT_EQ(text(120, 32), std::string(32, '\t'));
  EXPECT_EQ(text(152, 64), "host" + std::string(60, '\0'));
}

TEST(BusinessCard, IsReadAsItWasWritten) {
  const BusinessCard rank = make_business_card(0);

  const auto read = read_business_cards(std::vector{bytes_of(rank), bytes_of(rank)});

  EXPECT_EQ(std::memcmp(&read[1], &rank, sizeof rank), 0);
  EXPECT_EQ(read[0].pid, ::getpid());
}

TEST(BusinessCard, CarriesTheSecretOnRankZeroOnly) {
  const decltype(BusinessCard::secret) none{};
  EXPECT_NE(make_business_card(0).secret, none);
  EXPECT_NE(make_business_card(0).secret, make_business_card(0).secret);
  EXPECT_EQ(make_business_card(1).secret, none);
  EXPECT_NE(listener_name(make_business_card(1)), listener_name(make_business_card(1)));
}

TEST(BusinessCard, IsRefusedFromAProcessThatCannotBeInTheJob) {
  EXPECT_EQ(refusal_of(bytes_of(on("b"))), "none");

  BusinessCard version = on("b");
  ++version.version;
  EXPECT_NE(refusal_of(bytes_of(version)).find("rank 1 on b is version 3 of joining, rank 0 is version 2"),
            std::string::npos);
  BusinessCard pages = on("b");
  pages.host.page_bytes = 65536;
  EXPECT_NE(refusal_of(bytes_of(pages)).find("rank 1 on b has pages of 65536 bytes, rank 0 of 4096"),
            std::string::npos);
  BusinessCard order = on("b");
  order.magic = __builtin_bswap64(order.magic);
  EXPECT_NE(refusal_of(bytes_of(order)).find("rank 1 on b has another byte order"), std::string::npos);
}

TEST(BusinessCard, RefusesBytesThatAreNoCard) {
  EXPECT_NE(refusal_of({}).find("rank 1 is another program"), std::string::npos);
  EXPECT_NE(refusal_of(std::vector<std::byte>(sizeof(BusinessCard))).find("rank 1 is another program"),
            std::string::npos);
  auto longer = bytes_of(on("b"));
  longer[8] = std::byte{business_card_version + 1};
  longer.resize(300);
  EXPECT_NE(refusal_of(longer).find("rank 1 is version 3 of joining"), std::string::npos);
  longer[8] = std::byte{business_card_version};
  EXPECT_NE(refusal_of(longer).find("rank 1 is another program"), std::string::npos);
}

TEST(Hosts, AreNumberedInTheOrderOfTheirFirstRanks) {
  const Hosts hosts = group_by_host(std::vector{on("b"), on("a"), on("b"), on("c"), on("a")});

  EXPECT_EQ(hosts.of, (std::vector{0, 1, 0, 2, 1}));
  EXPECT_EQ(hosts.names, (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(hosts.ranks_on(1), (std::vector{1, 4}));
}

TEST(Hosts, AreToldApartByTheirNamespaces) {
  std::vector<BusinessCard> ranks(5, on("a"));
  ranks[1].host.network_namespace = 7;
  ranks[2].host.ipc_namespace = 7;
  ranks[3].pid_namespace = 7;

  EXPECT_EQ(group_by_host(ranks).of, (std::vector{0, 1, 2, 3, 0}));
}

}  // namespace
}  // namespace tonari::job
