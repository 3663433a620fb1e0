#pragma once

#include <tonari/job.hpp>
#include <tonari/message.hpp>
#include <tonari/result.hpp>
#include <tonari/share.hpp>
#include <tonari/status.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <utility>

// Reductions over all ranks that are also a synchronisation: all ranks see after them what any rank wrote before them,
// as with share::barrier().
//
// Result: the same in all ranks. The operation must be associative, and need not commute: operands stay in the order of
//         ranks. Their grouping depends on the number of ranks and on which ranks share a host; with the same of these,
//         the same numbers give the same rounding.
// Errors: the first use of shared memory in a job may throw SetupError, as creation of an array does. Status: ok;
//         peer_gone: a rank died or has left; no_memory.
namespace tonari::detail {

/// The communicator of all ranks of the job that collective calls use. Collective at the first use of shared memory.
/// Throws SetupError.
Communicator& ranks_of(Job& job);

}  // namespace tonari::detail

namespace tonari::share {

/// Collective. Combines all ranks' values; of arrays and other ranges, each element separately.
template <Transferable T, class Operation>
Result<T> reduce(Job& job, T value, const Operation& operation) {
  Communicator& ranks = detail::ranks_of(job);
  Status status = release(job, Others::will_come);
  if (status == Status::ok) status = ranks.all_reduce(value, operation);  // returns when all have come, as a barrier
  if (status == Status::ok) status = acquire(job);
  return {status, std::move(value)};
}

/// Collective. The sum of all ranks' values.
template <Transferable T>
Result<T> sum(Job& job, T value) {
  return reduce(job, std::move(value), std::plus<>());
}

/// Collective: calls body(i) for each i of [0, count) in one rank, as part_of() divides them, and combines the results
/// in that order. `neutral` changes nothing, as 0 in a sum. For exceptions of a body see parallel_for().
template <Transferable T, class Operation, std::invocable<std::size_t> Body>
Result<T> parallel_reduce(Job& job, std::size_t count, T neutral, const Operation& operation, Body body) {
  const Part part = part_of(count, job.rank(), job.size());
  T own = std::move(neutral);
  for (std::size_t i = part.first; i < part.first + part.count; ++i) own = operation(own, body(i));
  return reduce(job, std::move(own), operation);
}

}  // namespace tonari::share
