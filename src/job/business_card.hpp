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

inline constexpr std::uint32_t business_card_version = 1;
inline constexpr std::size_t listener_digits = 32;

// Offsets in bytes. Magic and version lie first in every version.
//   0        8         12     16            80              88         120      152         216
//   +--------+---------+------+-------------+---------------+----------+--------+-----------+
//   | magic  | version | pid  | identity 64 | pid namespace | listener | secret | host name |
//   +--------+---------+------+-------------+---------------+----------+--------+-----------+
/// What a rank tells all others through the launcher, before they know anything of each other.
struct BusinessCard {
  std::uint64_t magic = handshake_magic;
  std::uint32_t version = business_card_version;
  std::int32_t pid = 0;
  HostIdentity host{};
  std::uint64_t pid_namespace = 0;               // what the process id is a number of
  std::array<char, listener_digits> listener{};  // the end of the name at which it listens for its neighbours
  std::array<std::byte, secret_bytes> secret{};  // rank 0's is the job's, the others' are zeros
  std::array<char, 64> host_name{};              // zeros behind its text, if it is shorter

  [[nodiscard]] std::string host_text() const;
};
static_assert(sizeof(BusinessCard) == 216 && offsetof(BusinessCard, host) == 16 &&
              offsetof(BusinessCard, secret) == 120);
static_assert(std::has_unique_object_representations_v<BusinessCard>, "padding would carry stale bytes to a peer");

/// This process's, with numbers of its own for `listener` and `secret`. Throws SetupError.
BusinessCard make_business_card(int rank);

/// The name in the abstract namespace at which the rank listens that introduced itself so.
std::string listener_name(const BusinessCard& rank);

/// Takes them apart, by rank. Throws SetupError, with the same text in every rank, when ranks cannot work together.
std::vector<BusinessCard> read_business_cards(std::span<const std::vector<std::byte>> all);

/// Where ranks are. Ranks are on one host when they can share memory and know each other's processes.
struct Hosts {
  std::vector<int> of{};             ///< By rank, numbered from 0 in the order of their first ranks.
  std::vector<std::string> names{};  ///< By host.

  [[nodiscard]] std::vector<int> ranks_on(int host) const;
};
Hosts group_by_host(std::span<const BusinessCard> ranks);

}  // namespace tonari::job
