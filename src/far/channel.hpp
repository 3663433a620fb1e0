#pragma once

#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// What a program's preload and its keeper say to each other. Both are built from one tree, which `version` checks.
//
//   keeper (tonari far)                                     program (preload)
//     makes the channel, a memfd, and a socket pair
//     sends the channel's descriptor; starts the program,
//     which inherits the other end: TONARI_FAR=NUMBER
//                                                             maps the channel; reserves arena and buffers;
//                                                             opens a userfaultfd; starts the agent
//       <------------------------------------------ Hello, with the userfaultfd
//     watches the arena
//     Go --------------------------------------------------->
//     Command -> agent: moves pages
//       <-------------------------------- Request of any thread: a range is given back
//
// The socket keeps messages apart (SOCK_SEQPACKET); the channel's descriptor comes with one byte.
// The program's end of the socket is the agent's alone: who reads an end of file on the other side knows that the
// address space is gone, by an exit or by another exec.
namespace tonari::far {

inline constexpr std::uint32_t channel_version = 3;
/// Names the number of the socket in the program's environment. The preload takes it out, and itself from LD_PRELOAD.
inline constexpr const char* socket_variable = "TONARI_FAR";

/// The first that the program says.
struct Hello {
  std::uint32_t version = channel_version;
  std::uint32_t reaches_everything = 0;  // faults of system calls, too; else only the program's own
  std::uint64_t arena = 0;               // address, aligned to a block
  std::uint64_t buffers = 0;             // address, aligned to a block
  std::int32_t error = 0;                // not 0: it cannot be; `what` failed so
  std::array<char, 236> what{};          // a call and what it was for
};
static_assert(sizeof(Hello) == 264);

/// From the keeper: the program may begin.
struct Go {
  std::uint32_t version = channel_version;
  std::uint32_t taken = 0;  // 0: it may not; the keeper says why, and ends it
};

/// What both sides do to a slot: idle -asker-> taken -asker-> asked -other-> answered -asker-> idle.
struct Slot {
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint32_t asked = 2;
  static constexpr std::uint32_t answered = 3;
  // Release by whoever changes it: what it wrote into the slot is there. Futexes wait on it.
  std::atomic<std::uint32_t> state{idle};
};

/// To the agent, from a thread of the keeper, which waits for the answer.
struct alignas(64) Command : Slot {
  enum class What : std::uint32_t { take_out, move_in, stock, empty, drop };

  What what{};
  std::uint32_t buffer = 0;
  std::uint32_t done = 0;     // stock: 1 if it could
  std::uint64_t address = 0;  // of a block; drop: of pages
  std::uint64_t bytes = 0;    // drop
  pager::PageSet pages;       // asked for; then those that came
};

/// To the keeper, from a thread of the program, which waits for the answer.
struct alignas(64) Request : Slot {
  enum class What : std::uint32_t {
    discard,     ///< The bytes are zeros from now on.
    use,         ///< The range is allocated: nothing to do but to count.
    stop_using,  ///< It is freed: discard, and count.
    will_need,
    done_with,
    sequential,
    random,
  };

  What what{};
  std::int32_t error = 0;  // the answer: 0, or an error number
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
};

/// Shared by program and keeper.
struct Channel {
  static constexpr std::size_t commands_max = 16;
  static constexpr std::size_t requests_max = 32;

  // By the keeper, before the program starts.
  std::uint32_t version = channel_version;
  std::uint32_t buffers = 0;
  std::uint64_t arena_bytes = 0;  // to be reserved: whole blocks
  std::uint64_t min_bytes = 0;    // of an allocation that goes to the arena
  std::int32_t keeper = 0;        // its process, which looks into the program's memory

  // Counted when there is something to do; a futex, on which agent and keeper sleep.
  alignas(64) std::atomic<std::uint32_t> agent_bell{0};
  alignas(64) std::atomic<std::uint32_t> keeper_bell{0};

  std::array<Command, commands_max> commands{};
  std::array<Request, requests_max> requests{};
};

}  // namespace tonari::far
