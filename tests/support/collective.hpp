#pragma once

#include "require.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::test {

/// One collective of all ranks, chosen by `turn`, of `count` elements. Checks the result if the collective succeeded.
inline Status collective(Communicator& world, std::size_t turn, std::size_t count) {
  const auto size = static_cast<std::size_t>(world.size());
  const int root = static_cast<int>(turn % size);
  std::vector<std::uint64_t> values(count, static_cast<std::uint64_t>(world.rank().value()) + turn);
  std::vector<std::uint64_t> all(world.rank() == root ? count * size : 0);
  Status status = Status::ok;
  std::uint64_t expected = 0;
  switch (turn % 4) {
    case 0: return world.barrier();
    case 1:
      status = world.broadcast(values, Rank{root});
      expected = static_cast<std::uint64_t>(root) + turn;
      break;
    case 2:
      status = world.all_reduce(values);
      expected = size * (size - 1) / 2 + size * turn;
      break;
    default:
      status = world.gather(values, all, Rank{root});
      if (world.rank() != root || all.empty()) return status;
      values.assign(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
      expected = size - 1 + turn;
  }
  if (status == Status::ok) require(values == std::vector(count, expected), "a collective gave something else");
  return status;
}

}  // namespace tonari::test
