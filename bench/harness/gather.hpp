#pragma once

#include "harness/wire.hpp"

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace tonari::bench {

/// Returns the values of ranks 0 to `ranks` - 1 on rank 0, and only the own value on others. Each of these ranks calls
/// it.
template <Wire W, class T>
std::vector<T> gather_values(W& wire, int ranks, const T& mine, int tag) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all{mine};
  if (wire.rank() != 0) {
    wire.send(std::as_bytes(std::span(all)), 0, tag);
    return all;
  }
  all.resize(static_cast<std::size_t>(ranks));
  for (int rank = 1; rank < ranks; ++rank) {
    wire.receive(std::as_writable_bytes(std::span(&all[static_cast<std::size_t>(rank)], 1)), rank, tag);
  }
  return all;
}

}  // namespace tonari::bench
