#pragma once

#include "job/handshake.hpp"
#include "job/identity.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tonari::job {

inline constexpr std::uint32_t business_card_version = 2;
inline constexpr std::size_t listener_digits = 32;

// Offsets in bytes. Magic and version are first in every version of the card.
//   +--------+---------+------+-------------+---------------+----------+--------+-----------+
//   | magic  | version | pid  | identity 64 | pid namespace | listener | secret | host name |
//   +--------+---------+------+-------------+---------------+----------+--------+-----------+
/// The record by which a rank introduces itself to all others, through the launcher, before they can communicate.
struct BusinessCard {
  std::uint64_t magic = handshake_magic;
  std::uint32_t version = business_card_version;
  std::int32_t pid = 0;
  HostIdentity host{};
  std::uint64_t pid_namespace = 0;  // the namespace in which `pid` is valid
  std::array<char, listener_digits>
      listener{};  // last part of the name of the socket on which it listens for its neighbours
  std::array<std::byte, secret_bytes> secret{};  // rank 0's secret is the job's; the other ranks send zeros
  std::array<char, 64> host_name{};              // padded with zeros if it is shorter

  [[nodiscard]] std::string host_text() const;
};
static_assert(sizeof(BusinessCard) == 216 && offsetof(BusinessCard, host) == 16 &&
              offsetof(BusinessCard, secret) == 120);
static_assert(std::has_unique_object_representations_v<BusinessCard>, "padding would carry stale bytes to a peer");

/// Returns the card of this process, with a fresh random `listener` and, for rank 0, a fresh `secret`. Throws
/// SetupError.
BusinessCard make_business_card(int rank);

/// Returns the name, in the abstract namespace, of the socket on which the rank with this card listens.
std::string listener_name(const BusinessCard& rank);

/// Decodes the cards of all ranks, by rank. Throws SetupError, with the same text in every rank, if two ranks cannot be
/// in one job.
std::vector<BusinessCard> read_business_cards(std::span<const std::vector<std::byte>> all);

/// The placement of ranks on hosts. Ranks are on one host if they can share memory and see each other's processes.
struct Hosts {
  std::vector<int> of{};  ///< Host number by rank. Hosts are numbered from 0 in the order of their first ranks.
  std::vector<std::string> names{};  ///< Host name by host number.

  [[nodiscard]] std::vector<int> ranks_on(int host) const;
};
Hosts group_by_host(std::span<const BusinessCard> ranks);

}  // namespace tonari::job
