#pragma once

#include <tonari/message.hpp>
#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace tonari::share {

/// The least and the greatest of the numbers that the ranks of a collective call pass.
struct Extremes {
  std::uint64_t least;
  std::uint64_t greatest;

  [[nodiscard]] bool is_one() const noexcept { return least == greatest; }
};

/// Lets a collective call that makes `what` fail in all ranks or in none. Throws this rank's `failure`; throws
/// SetupError if another rank has a failure, or has died. Returns the extremes over all ranks of each of `numbers`.
template <std::size_t count>
std::array<Extremes, count> agree(Communicator& ranks, const std::exception_ptr& failure, const char* what,
                                  const std::array<std::uint64_t, count>& numbers) {
  const std::uint64_t failed = failure ? 1 : 0;
  std::array<Extremes, count + 1> all{Extremes{failed, failed}};
  std::ranges::transform(numbers, all.begin() + 1, [](std::uint64_t mine) { return Extremes{mine, mine}; });
  const Status status = ranks.all_reduce(all, [](const Extremes& one, const Extremes& other) {
    return Extremes{std::min(one.least, other.least), std::max(one.greatest, other.greatest)};
  });
  if (failure) std::rethrow_exception(failure);
  if (status != Status::ok) throw SetupError(fmt::format("making {}: a rank died or left meanwhile", what));
  if (all[0].greatest != 0) throw SetupError(fmt::format("making {}: another rank could not, and says why", what));
  std::array<Extremes, count> said{};
  std::copy(all.begin() + 1, all.end(), said.begin());
  return said;
}

inline void agree(Communicator& ranks, const std::exception_ptr& failure, const char* what) {
  (void)agree(ranks, failure, what, std::array<std::uint64_t, 0>{});
}

}  // namespace tonari::share
