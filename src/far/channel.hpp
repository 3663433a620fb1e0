#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/passed_faults.hpp"
#include "pager/tally.hpp"

#include <tonari/far.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The protocol between a program's preload library and its keeper. Both are built from one tree; `version` checks that.
//
//   keeper (decision 14)                                    program (preload)
//     is given one end of a socket pair by the program's
//     parent (tonari far); the program inherits the other:
//     TONARI_FAR=NUMBER. Makes the channel, a memfd, and
//     sends its descriptor, and the one of the memory that
//     servers on this host lend. Unless the keeper is to
//     serve all faults, also sends the one of the pager's
//     tables
//                                                             maps them; reserves arena and buffers; opens a
//                                                             userfaultfd; starts the agents
//       <------------------------------------------ Hello, with the userfaultfd
//     watches the arena
//     Go --------------------------------------------------->
//     Command -> agents: move pages, copy them
//       <------------------ Request of any thread, for example: discard a range
//
// The socket keeps message boundaries (SOCK_SEQPACKET); each descriptor comes with one byte.
// Only the agents hold the program's end of the socket. So an end of file at the keeper means that the address space
// has ended, by an exit or by another exec.
namespace tonari::far {

inline constexpr std::uint32_t channel_version = 11;
/// Environment variable with the number of the socket. The preload library removes it.
inline constexpr const char* socket_variable = "TONARI_FAR";
/// Environment variable with the place where the keeper listens for processes that the program has started or executed:
/// MIN_BYTES,FAULTS@NAME, with a name of FaultsBy and one of the abstract namespace. A process connects when it first
/// allocates at least MIN_BYTES; its end of the connection is then used like the socket above.
inline constexpr const char* door_variable = "TONARI_FAR_KEEPER";
/// In a file without symbols, .data and .bss are far memory as a whole, each from this many times the smallest
/// allocation on. Many programs have static variables of 1 to 2 MiB in all, without a large one among them.
inline constexpr std::size_t unnamed_factor = 16;

/// The process or threads that serve the page faults of a program.
enum class FaultsBy : std::uint32_t {
  choice,   ///< The process chooses when it begins: see far/preload/choice.hpp.
  keeper,   ///< The keeper; system calls on absent pages work, too.
  threads,  ///< The threads that meet them, as far as they can.
};
inline constexpr std::array<std::string_view, 3> names_of_faults_by{"auto", "keeper", "self"};

/// The first message from the program.
struct Hello {
  std::uint32_t version = channel_version;
  std::uint32_t reaches_everything = 0;  // 1: faults of system calls are served, too; 0: only the program's own
  std::uint64_t arena = 0;               // address, aligned to a block
  std::uint64_t buffers = 0;             // address, aligned to a block
  std::uint32_t threads_serve = 0;       // 1: the program's threads serve their own faults
  std::int32_t error = 0;                // not 0: the program cannot have far memory, because `what` failed
  std::uint32_t stays_local = 0;         // 1: if it cannot, it goes on with local memory, and has said why
  std::array<char, 228> what{};          // the call that failed, and its purpose
};
static_assert(sizeof(Hello) == 264);

/// The keeper's reply: the program may begin.
struct Go {
  std::uint32_t version = channel_version;
  std::uint32_t taken = 0;  // 0: it may not; the keeper reports why, and ends the program
};

/// A slot's states, and the side that sets each:
///   idle --asker--> taken --asker--> asked --other--> [at_work --other-->] `answered` --asker--> idle
struct Slot {
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint32_t asked = 2;
  static constexpr std::uint32_t at_work = 3;  // if several threads might serve the slot
  static constexpr std::uint32_t answered = 4;
  // Each change is a release, so that the reader sees what was written into the slot. Both sides wait on it by futex.
  std::atomic<std::uint32_t> state{idle};
};

/// Memory that both sides map. Places in it are in bytes from its start.
enum class Shared : std::uint32_t { scratch, lent };

/// Sent to the agents by a thread of the keeper, which waits for the reply.
struct alignas(64) Command : Slot {
  enum class What : std::uint32_t {
    take_out,
    move_in,
    prefault,
    empty,
    drop,
    fill,
    read,
    protect,
    read_in_place,
    drop_protected,
  };

  What what{};
  std::uint32_t buffer = 0;
  std::uint32_t done = 0;     // prefault: 1 if it succeeded
  std::uint64_t address = 0;  // of a block; drop: of the first page
  std::uint64_t bytes = 0;    // drop
  std::uint32_t copies = 0;   // take_out: 1 if pages that a forked child shares are copied, so that they can be moved
  Shared shared{};            // fill: where the block is; read, read_in_place: where the pages go
  std::uint64_t place = 0;    // in `shared`
  std::uint32_t first = 0;    // read, read_in_place: the page that would go to `place`
  pager::PageSet pages;       // requested; in the reply: moved, protected or dropped
  pager::PageSet going;       // drop_protected: the pages to drop
  std::array<pager::Checksum, pager::block_pages> sums;  // in the reply of take_out, fill and protect, for those pages
};

/// Sent to the keeper by a thread of the program, which waits for the reply.
struct alignas(64) Request : Slot {
  enum class What : std::uint32_t {
    discard,     ///< The bytes read as zeros from now on.
    use,         ///< The range is allocated: only counted.
    stop_using,  ///< The range is freed: discarded, and counted.
    will_need,
    done_with,
    sequential,
    random,
    statistics,
    hide,              ///< The range is about to become unreadable, or something else is to be mapped there.
    watch,             ///< The range, outside the arena, is far memory from now on. No page is present yet.
    watch_in_use,      ///< The same, but pages may be present. The next two follow.
    know_present,      ///< These pages of such a range were present.
    know_all_present,  ///< All such pages of the range at `start` have been told.
  };

  What what{};
  std::int32_t error = 0;  // in the reply: 0, or an error number
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  tonari_far_statistics statistics{};  // in the reply to a request for statistics
};

/// A region of the keeper's pager. Its tables begin at `tables` in their file.
struct SharedRegion {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tables = 0;
};

/// Mapped by program and keeper. Scratch memory follows, from scratch_offset on: one block for each worker.
struct Channel {
  static constexpr std::size_t agents_max = 8;
  static constexpr std::size_t commands_max = 16;
  static constexpr std::size_t requests_max = 32;
  static constexpr std::size_t regions_max = 160;  // the arena, and static variables

  // Written by the keeper before the program starts.
  std::uint32_t version = channel_version;
  std::uint64_t identity = 0;  // random: only this process and the keeper know it
  std::uint32_t buffers = 0;
  std::uint32_t agents = 0;       // as many as the keeper has threads that use them at a time
  std::uint64_t arena_bytes = 0;  // address space to reserve, in whole blocks
  std::uint64_t min_bytes = 0;    // smallest allocation that goes to the arena
  std::uint64_t lent_offset = 0;  // of the memory that servers on this host lend, in its file
  std::uint64_t lent_bytes = 0;   // 0: no memory is lent here, and no descriptor is sent

  std::uint64_t table_bytes = 0;  // 0: the kernel reports faults to the keeper, and no descriptor is sent

  std::atomic<std::uint32_t> ended{0};  // not 0: the keeper leaves; faults are not served any more
  // Not 0: the program goes on with local memory, and has said why. Relaxed: only shown to the user.
  std::atomic<std::uint32_t> stays_local{0};

  // Incremented when there is something to do. Agents and keeper sleep on these futexes.
  alignas(64) std::atomic<std::uint32_t> agent_doorbell{0};
  alignas(64) std::atomic<std::uint32_t> keeper_doorbell{0};

  // The threads of the agents, as the kernel numbers them. Relaxed: written before the process begins.
  std::array<std::atomic<std::uint32_t>, agents_max> agent_threads{};

  std::array<Command, commands_max> commands{};
  std::array<Request, requests_max> requests{};

  // Used only if the program's threads serve their own faults.
  alignas(64) pager::Tally tally;
  alignas(64) pager::PassedFaults passed;
  // Release after a region is complete; a thread that faults in a region has seen it.
  alignas(64) std::atomic<std::uint32_t> regions_count{0};
  std::array<SharedRegion, regions_max> regions{};
};

inline constexpr std::uint64_t scratch_offset =
    (sizeof(Channel) + pager::page_bytes - 1) / pager::page_bytes * pager::page_bytes;
inline constexpr std::uint64_t channel_bytes = scratch_offset + pager::workers_max * pager::block_bytes;

}  // namespace tonari::far
