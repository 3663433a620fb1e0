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

// Numbers of all ranks made one, at a synchronisation: what any rank wrote before it, all see after it, as with
// share::barrier().
//
// Result: the same in all ranks. The operation must be associative, and need not commute: operands stay in the order of
//         ranks. How they are combined depends on the number of ranks, and on which ranks share a host, so with the
//         same of those the same numbers give the same rounding.
// Errors: the first use of shared memory in a job may throw SetupError, as an array's does. peer_gone: a rank died or
//         left.
namespace tonari::detail {

/// All ranks of the job, for what is collective. Collective where it is the first use of shared memory. Throws
/// SetupError.
Communicator& ranks_of(Job& job);

}  // namespace tonari::detail

namespace tonari::share {

/// Collective. Of arrays and other ranges, each element for itself.
template <Transferable T, class Operation>
Result<T> reduce(Job& job, T value, const Operation& operation) {
  Communicator& ranks = detail::ranks_of(job);
  Status status = release(job, Others::will_come);
  if (status == Status::ok) status = ranks.all_reduce(value, operation);  // returns when all have come, as a barrier
  if (status == Status::ok) status = acquire(job);
  return {status, std::move(value)};
}

/// Collective.
template <Transferable T>
Result<T> sum(Job& job, T value) {
  return reduce(job, std::move(value), std::plus<>());
}

/// Collective: body(i) for each i of [0, count), each in one rank, as part_of has it; what they answer is combined in
/// that order. `neutral` changes nothing, as 0 in a sum.
template <Transferable T, class Operation, std::invocable<std::size_t> Body>
Result<T> parallel_reduce(Job& job, std::size_t count, T neutral, const Operation& operation, Body body) {
  const Part part = part_of(count, job.rank(), job.size());
  T own = std::move(neutral);
  for (std::size_t i = part.first; i < part.first + part.count; ++i) own = operation(own, body(i));
  return reduce(job, std::move(own), operation);
}

}  // namespace tonari::share
