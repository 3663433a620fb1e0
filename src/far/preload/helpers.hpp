#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

// Threads of ours in the program: the agents, and a guardian in a forked child. libc does not know them, so they use
// nothing of it. They take no signals, and have descriptor tables of their own: the program cannot close their
// descriptors, and they keep none of the program's open.
namespace tonari::far {

/// Starts a thread that calls function(), which never returns. It shares the thread-local memory of its creator, and
/// must not use it. The calling thread must block all signals. Returns a negative error number on failure.
long clone_helper(void (*function)() noexcept, std::byte* stack_end) noexcept;

/// Called first by each helper. Closes all descriptors but `kept`, which it sorts.
void close_all_but(std::span<int> kept) noexcept;

/// The helper's view of the program's credentials. Its creator waits until it exists.
class Follower {
 public:
  /// `doorbell`: the futex on which the helper sleeps. It is rung when credentials have changed.
  explicit Follower(std::atomic<std::uint32_t>& doorbell) noexcept;
  /// Takes the credentials that the program has changed, if it has.
  void follow() noexcept;

 private:
  std::uint32_t changes_;
};

/// Whether the supplementary groups have changed: only a process with privileges may set them, even to the same ones.
enum class Groups : std::uint8_t { same, changed };
/// Gives all helpers the calling thread's user and group ids, and its supplementary groups if they have changed.
/// Returns true once all helpers have them, false if one could not take them. Call it while no helpers start, and by
/// one thread at a time.
bool change_helpers_credentials(Groups groups) noexcept;

/// Returns true if this process has helpers. A child of a raw fork seems to have its parent's.
bool has_helpers() noexcept;
/// Called in a forked child, which has none of its parent's helpers.
void forget_helpers() noexcept;

/// Ends the process: its absent pages are lost with the keeper.
void end_program() noexcept;
/// Returns true if the keeper at the other end of `socket` has ended.
bool has_closed(int socket) noexcept;

/// How long a helper waits before it checks that the keeper still lives.
inline constexpr long patience_s = 1;

}  // namespace tonari::far
