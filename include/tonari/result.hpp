#pragma once

#include <tonari/status.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// The one shape of every result that is more than a status, and the way to turn a failure into an exception.
namespace tonari {

/// A status and a value: what receives, probes, atomic operations, reductions and pushes of differences return.
///
///   const auto [status, envelope] = world.receive(buffer);     // look at the status
///   const Envelope envelope = check(world.receive(buffer));    // or throw Error unless it is ok
template <class T>
struct [[nodiscard]] Result {
  Status status = Status::ok;
  T value{};  ///< Meaningful if `status` is ok, and where the call says so.

  friend bool operator==(const Result&, const Result&) = default;
};

/// Thrown by check(). Its text names the call and explains the status.
struct Error : std::runtime_error {
  Error(Status why, const std::string& what) : std::runtime_error(what), status(why) {}
  Status status;
};

namespace detail {
[[noreturn, gnu::cold]] void throw_error(Status status, std::string_view what);
}  // namespace detail

/// Returns if `status` is ok, otherwise throws Error. `what` says what was tried: check(world.barrier(), "barrier").
/// For programs that have no recovery of their own: an exception that leaves the scope of the Job ends the job. It
/// throws for holder_died, too, although the caller then has the lock.
inline void check(Status status, std::string_view what = {}) {
  if (status != Status::ok) [[unlikely]]
    detail::throw_error(status, what);
}
/// Returns the value if the status is ok, otherwise throws Error.
template <class T>
T check(Result<T> result, std::string_view what = {}) {
  if (result.status != Status::ok) [[unlikely]]
    detail::throw_error(result.status, what);
  return std::move(result.value);
}

}  // namespace tonari
