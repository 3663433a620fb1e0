#pragma once

#include "far/control.hpp"

#include <cstdint>

namespace tonari::far {

// The available memory of the program's host, if servers on it lend the default:
//
//   |<----------- usable_bytes() ----------->|
//   +-----------------------------+----------+---------------------------------------+
//   | servers on this host: D     | local: L | not planned: page tables, the pager's |
//   |                             |          | tables, the processes themselves      |
//   +-----------------------------+----------+---------------------------------------+
//
// Servers keep their copy of a page that has come back. So in the end they hold all of the data, and local memory holds
// some of them once more. For a limit of P %, L is P % of D; otherwise L is the limit.

/// Returns how much of `available` bytes far memory may use, local data included.
[[nodiscard]] std::uint64_t usable_bytes(std::uint64_t available) noexcept;

/// Returns how much all servers on the program's host together lend by default, if `local` is the program's limit.
[[nodiscard]] std::uint64_t lendable_bytes(std::uint64_t available, const Limit& local) noexcept;

/// Returns the most that a limit in percent may allow on the program's host, where servers lend `lent` bytes. It allows
/// the whole share of data that this host's memory can hold.
[[nodiscard]] std::uint64_t local_bytes_max(std::uint64_t available, std::uint64_t lent, const Limit& local) noexcept;

}  // namespace tonari::far
