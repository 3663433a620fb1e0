#pragma once

#if __cplusplus < 202002L
#error "tonari needs C++20: compile with -std=c++20"
#include <tonari needs C++20>  // a missing header ends the compilation here, before hundreds of errors that follow
#endif

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace tonari {

// clang-format 14 takes an enum with an attribute for a braced list.
// clang-format off
/// The outcome of a call. Calls on fast paths return one, and throw nothing.
enum class [[nodiscard]] Status : std::uint8_t {
  ok,           ///< Done, or started: each call says which.
  again,        ///< Not now, because there is no room or a lock is held. Nothing was started: retry later.
  truncated,    ///< The message was longer than the buffer: its first bytes were delivered, the rest is lost.
  invalid,      ///< An argument is wrong: a rank, tag or root outside its range, or sizes that overflow.
  bounds,       ///< A range leaves the memory it names.
  bad_address,  ///< A buffer is not readable or writable memory of its process.
  peer_gone,    ///< The peer died, or has left the job; every later call that needs it returns the same.
  cancelled,    ///< The operation was cancelled before it matched.
  no_memory,    ///< The system refused memory that the call needed.
  denied,       ///< The owner of the memory gave this rank no right to do that.
  timed_out,    ///< The time limit passed first, and nothing was taken.
  holder_died,  ///< Done: this rank has the lock. The previous holder died and may have left the data half written.
};
// clang-format on

/// The name of a status, as in its enumerator: "ok", "peer_gone".
[[nodiscard]] std::string_view to_string(Status status) noexcept;

/// One sentence that says what happened and what to do about it.
[[nodiscard]] std::string_view explain(Status status) noexcept;

/// Thrown by constructors and by collective set-up: what was tried, why it failed, and the remedy.
struct SetupError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tonari
