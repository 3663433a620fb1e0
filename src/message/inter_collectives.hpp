#pragma once

#include "message/part.hpp"
#include "message/reductions.hpp"
#include "message/schedule.hpp"

#include <cstddef>
#include <span>

// Collectives of inter-communicators: data of each side go to the other side. They are recorded as the collectives of
// exchanges.hpp and reductions.hpp. Data that are the same for all ranks of a side travel between rank 0 of both sides.
// Ranks that an argument names are ranks of the other side. All functions throw std::bad_alloc.
namespace tonari::message {

/// The part of a rank in a collective with a root, if it is no rank that names the root: what MPI_ROOT and
/// MPI_PROC_NULL say.
inline constexpr int self_is_root = -1;
inline constexpr int takes_no_part = -2;

void write_inter_barrier(Schedule& schedule, const Context& context);
/// The root's data go to all ranks of the other side.
void write_inter_broadcast(Schedule& schedule, const Context& context, const Part& data, int root);
/// Each rank's `mine` goes to the root's all(rank).
void write_inter_gather(Schedule& schedule, const Context& context, const Part& mine, const Parts& all, int root);
/// The root's all(rank) goes to each rank's `mine`.
void write_inter_scatter(Schedule& schedule, const Context& context, const Parts& all, const Part& mine, int root);
/// sent(rank) goes to that rank of the other side, where it becomes received(this rank). An all-gather sends the same
/// part to all.
void write_inter_exchange(Schedule& schedule, const Context& context, const Parts& sent, const Parts& received);

/// Combines the operands of the root's other side into the root's `result`.
void write_inter_reduce(Schedule& schedule, const Context& context, Operands own, std::span<std::byte> result,
                        const detail::Reduction& reduction, int root);
/// Combines the operands of each side into the result of every rank of the other side.
void write_inter_all_reduce(Schedule& schedule, const Context& context, Operands own, std::byte* result,
                            const detail::Reduction& reduction);
/// The same, on rank 0 of each side only. `result` may be `own`.
void write_inter_leaders_reduce(Schedule& schedule, const Context& context, Operands own, std::byte* result,
                                const detail::Reduction& reduction);

}  // namespace tonari::message
