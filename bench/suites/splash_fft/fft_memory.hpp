#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace tonari::bench::splash_fft {

/// A push among many: to an offset in a rank's part.
struct Push {
  int rank;
  std::size_t offset;
  std::span<const std::byte> from;
};

/// Memory of all ranks, a part of each, that every rank reaches by itself; made by all together. Offsets are bytes from
/// the start of a part.
template <class M>
concept SharedMemory = requires(M& memory, const M& constant, int rank, std::size_t offset,
                                std::span<const std::byte> from, std::span<std::byte> to, typename M::Pieces& pieces,
                                typename M::Batch& batch, const std::vector<Push>& pushes) {
  { constant.local() } -> std::same_as<std::span<std::byte>>;
  // Buffers belong to the memory from these calls until settle().
  memory.push(rank, offset, from);
  memory.push_pieces(rank, offset, from, pieces);  // in one operation
  memory.pull(to, rank, offset);
  memory.post(batch);
  memory.settle();   // returns when what this rank has started is done, and what it has pulled is there
  memory.barrier();  // returns when what every rank has pushed and settled before is in its place
  // What is posted again and again: made once. Pieces: so many, of so many bytes, so far apart on both sides.
  { memory.batch(pushes) } -> std::same_as<typename M::Batch>;
  {typename M::Pieces(std::size_t{}, std::size_t{}, std::size_t{})};
};

}  // namespace tonari::bench::splash_fft
