#pragma once

#include "message/host_groups.hpp"
#include "message/rounds.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <span>

// Reductions, recorded as rounds of messages and folds. The operands of a rank are `own`; `own` and `result` may be the
// same memory, but not overlap otherwise. Operands stay in the order of ranks, unless the reduction commutes. The same
// numbers of ranks and elements, and the same hosts, give the same grouping. All functions throw std::bad_alloc.
namespace tonari::message {

using Operands = std::span<const std::byte>;

/// Combines all ranks' operands into the root's `result`. The other ranks' `result` is not used.
void write_reduce(Rounds& rounds, const Members& members, Operands own, std::byte* result,
                  const detail::Reduction& reduction, int root);
/// Combines all ranks' operands into the result of every rank.
void write_all_reduce(Rounds& rounds, const Members& members, Operands own, std::byte* result,
                      const detail::Reduction& reduction);
/// Combines the operands of ranks 0 to this one; of the ranks before this one if `exclusive`. Then rank 0's result
/// stays as it is.
void write_scan(Rounds& rounds, const Members& members, Operands own, std::byte* result,
                const detail::Reduction& reduction, bool exclusive);
/// Combines all ranks' operands; each rank receives one stretch of the result. `elements`: by rank, the length of its
/// stretch. The stretches follow each other. Here `result` may also be the beginning of `own`.
void write_reduce_scatter(Rounds& rounds, const Members& members, const std::byte* own,
                          std::span<const std::size_t> elements, std::byte* result, const detail::Reduction& reduction);

}  // namespace tonari::message
