#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"

#include <tonari/far.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// What a program's preload and its keeper say to each other. Both are built from one tree, which `version` checks.
//
//   keeper (decision 14)                                    program (preload)
//     is given one end of a socket pair by the program's
//     parent (tonari far); the program inherits the other:
//     TONARI_FAR=NUMBER. Makes the channel, a memfd, and
//     sends its descriptor, and that of what servers on this
//     host lend
//                                                             maps both; reserves arena and buffers; opens a
//                                                             userfaultfd; starts the agents
//       <------------------------------------------ Hello, with the userfaultfd
//     watches the arena
//     Go --------------------------------------------------->
//     Command -> agents: move pages, copy them
//       <-------------------------------- Request of any thread: a range is given back
//
// The socket keeps messages apart (SOCK_SEQPACKET); each descriptor comes with one byte.
// The program's end of the socket is the agents' alone: who reads an end of file on the other side knows that the
// address space is gone, by an exit or by another exec.
namespace tonari::far {

inline constexpr std::uint32_t channel_version = 6;
/// The number of the socket, in the program's environment. The preload takes it out; and itself from LD_PRELOAD, unless
/// what the program starts is to have far memory, too.
inline constexpr const char* socket_variable = "TONARI_FAR";
/// Where the keeper listens for such: MIN_BYTES@NAME, a name of the abstract namespace. A process connects when it
/// first asks for so much memory; its end of the connection is as the socket above.
inline constexpr const char* door_variable = "TONARI_FAR_CHILDREN";

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

/// What both sides do to a slot: idle -asker-> taken -asker-> asked -other-> [at_work -other->] answered -asker-> idle.
struct Slot {
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint32_t asked = 2;
  static constexpr std::uint32_t at_work = 3;  // where others might take it up, too
  static constexpr std::uint32_t answered = 4;
  // Release by whoever changes it: what it wrote into the slot is there. Futexes wait on it.
  std::atomic<std::uint32_t> state{idle};
};

/// Memory that both sides see; places in it are bytes from its start.
enum class Shared : std::uint32_t { scratch, lent };

/// To the agents, from a thread of the keeper, which waits for the answer.
struct alignas(64) Command : Slot {
  enum class What : std::uint32_t { take_out, move_in, stock, empty, drop, fill, read };

  What what{};
  std::uint32_t buffer = 0;
  std::uint32_t done = 0;                                // stock: 1 if it could
  std::uint64_t address = 0;                             // of a block; drop: of pages; read: a place in the buffer
  std::uint64_t bytes = 0;                               // drop, read
  Shared shared{};                                       // fill: where a block is; read: where the pages go
  std::uint64_t place = 0;                               // in `shared`
  pager::PageSet pages;                                  // asked for; then those that came
  std::array<pager::Checksum, pager::block_pages> sums;  // the answer of take_out and fill, of those pages
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
    statistics,
  };

  What what{};
  std::int32_t error = 0;  // the answer: 0, or an error number
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  tonari_far_statistics statistics{};  // the answer to that
};

/// Shared by program and keeper. Scratch memory follows, from scratch_offset on, a block for each worker.
struct Channel {
  static constexpr std::size_t commands_max = 16;
  static constexpr std::size_t requests_max = 32;

  // By the keeper, before the program starts.
  std::uint32_t version = channel_version;
  std::uint32_t buffers = 0;
  std::uint32_t agents = 0;       // as many as threads of the keeper may ask at a time
  std::uint64_t arena_bytes = 0;  // to be reserved: whole blocks
  std::uint64_t min_bytes = 0;    // of an allocation that goes to the arena
  std::uint64_t lent_offset = 0;  // of what servers on this host lend, in its descriptor
  std::uint64_t lent_bytes = 0;   // 0: nothing, and no descriptor

  std::atomic<std::uint32_t> ended{0};  // not 0: the keeper leaves, and nobody answers faults any more

  // Counted when there is something to do; a futex, on which agents and keeper sleep.
  alignas(64) std::atomic<std::uint32_t> agent_doorbell{0};
  alignas(64) std::atomic<std::uint32_t> keeper_doorbell{0};

  std::array<Command, commands_max> commands{};
  std::array<Request, requests_max> requests{};
};

inline constexpr std::uint64_t scratch_offset =
    (sizeof(Channel) + pager::page_bytes - 1) / pager::page_bytes * pager::page_bytes;
inline constexpr std::uint64_t channel_bytes = scratch_offset + pager::workers_max * pager::block_bytes;

}  // namespace tonari::far
