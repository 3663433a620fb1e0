#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace tonari::bench::splash_fft {

/// One push of a batch, to an offset in a rank's part.
struct Push {
  int rank;
  std::size_t offset;
  std::span<const std::byte> from;
};

/// Memory with a part on each rank, which every rank can access without help. Creation is collective. Offsets are bytes
/// from the start of a part.
template <class M>
concept SharedMemory = requires(M& memory, const M& constant, int rank, std::size_t offset,
                                std::span<const std::byte> from, std::span<std::byte> to, typename M::Pieces& pieces,
                                typename M::Batch& batch, const std::vector<Push>& pushes) {
  { constant.local() } -> std::same_as<std::span<std::byte>>;
  // Do not use the buffers from these calls until settle().
  memory.push(rank, offset, from);
  memory.push_pieces(rank, offset, from, pieces);  // in one operation
  memory.pull(to, rank, offset);
  memory.post(batch);
  memory.settle();   // completes all operations that this rank started
  memory.barrier();  // also completes at their targets all pushes that any rank settled before
  // A batch is created once and posted repeatedly. Pieces: their number, bytes, and distance on both sides.
  { memory.batch(pushes) } -> std::same_as<typename M::Batch>;
  {typename M::Pieces(std::size_t{}, std::size_t{}, std::size_t{})};
};

}  // namespace tonari::bench::splash_fft
