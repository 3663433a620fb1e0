#pragma once

#include "far/channel.hpp"
#include "pager/statistics.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

// The protocol between `tonari far`, which is the program's parent, and the keeper: whole messages over a
// SOCK_SEQPACKET connection in the abstract namespace. Both are the same executable, on one host.
//
//   tonari far                                   keeper: rank 0 of the servers' job
//     listens, starts the job
//       <----------------------------------- connects; Report::ready, or failed
//     starts the program; Order::keep, with the keeper's end of a socket to it
//       <----------------------------------- Report::kept: the program runs; or failed
//     Order::report ----------------------->
//       <----------------------------------- Report::statistics
//       <----------------------------------- Report::advice: something that the user should know; the program goes on
//       <----------------------------------- Report::failed: the program cannot go on
//       <----------------------------------- Report::all_gone: no process with far memory is left
//     closes the connection: keeper and servers leave
namespace tonari::far {

/// How much of its far memory a program may hold in its own memory.
struct Limit {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;  // of the pages that it has touched; 0: `bytes` is the limit
  std::uint32_t reserved = 0;
};

/// How a program's pages are kept.
enum class StoreKind : std::uint32_t {
  ram,       ///< At servers, as they are.
  lz4,       ///< At servers, each page compressed on its own.
  file,      ///< In a file of the keeper, without servers.
  lz4_file,  ///< As lz4; cold pages in a file of the keeper when the servers are nearly full.
};
constexpr bool has_servers(StoreKind kind) noexcept { return kind != StoreKind::file; }
constexpr bool has_file(StoreKind kind) noexcept { return kind == StoreKind::file || kind == StoreKind::lz4_file; }
constexpr bool compresses(StoreKind kind) noexcept { return kind == StoreKind::lz4 || kind == StoreKind::lz4_file; }

/// Returns the name at which the keeper listens for processes that the program has started or executed, if its `tonari
/// far` listens at `front`.
inline std::string door_of(std::string_view front) { return std::string(front) + "-door"; }

struct Order {
  enum class What : std::uint32_t { keep, report };
  What what = What::keep;
  Limit limit{};
  std::uint64_t min_bytes = 0;
  std::uint64_t arena_bytes = 0;  // address space for the program's far memory
  std::uint32_t replicas = 1;
  StoreKind store = StoreKind::ram;
  FaultsBy faults = FaultsBy::choice;
  std::uint32_t with_children = 0;  // all processes that the program starts may have far memory
  std::int32_t program = 0;         // process id
  // Where the file is created, if has_file(store). An absolute path, followed by at least one zero.
  std::array<char, 4096> directory{};
};
static_assert(std::is_trivially_copyable_v<Order>);

/// Sums over all processes. Current amounts count living processes only, or the last process if all have ended. Peaks
/// are sums of each process's own peak, except for the limit and for the bytes that are stored at servers.
struct Statistics {
  pager::Statistics pager{};
  std::uint64_t in_use_bytes = 0;  // allocated in the arena, or static
  std::uint64_t in_use_peak_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t limit_peak_bytes = 0;
  std::uint64_t stored_bytes = 0;  // at servers, in whole chunks; in files, if there are no servers
  std::uint64_t stored_peak_bytes = 0;
  std::uint64_t stored_data_peak_bytes = 0;  // pages that are stored there as they are; less if data are sparse
  std::uint64_t capacity_bytes = 0;
  // Only if the store compresses; otherwise 0.
  std::uint64_t kept_bytes = 0;        // of the program's pages, at servers
  std::uint64_t packed_bytes = 0;      // the room that they take there
  std::uint64_t packed_bytes_out = 0;  // the compressed size of all pages that were ever sent
  // Only if the store has a file; otherwise 0.
  std::uint64_t file_bytes = 0;  // disk space that files take, in whole blocks
  std::uint64_t file_peak_bytes = 0;
  std::uint64_t file_data_peak_bytes = 0;  // pages in these blocks; less if data are sparse
  // Only if cold pages go to a file; otherwise 0.
  std::uint64_t bytes_to_file = 0;
  std::uint64_t bytes_from_file = 0;
  std::uint32_t servers = 0;
  std::uint32_t processes = 0;           // that ever had data in far memory
  std::uint32_t living = 0;              // of `processes`
  std::uint32_t reaches_everything = 0;  // faults of system calls are served
  std::uint32_t in_file = 0;             // pages are in a file: all of them, or cold ones
  std::uint32_t stayed_local = 0;        // processes that could have no far memory, and have said why
};

struct Report {
  enum class What : std::uint32_t { ready, kept, statistics, advice, failed, all_gone };
  What what = What::ready;
  std::array<char, 508> text{};  // failed: the reason; advice: a sentence. Followed by at least one zero
  Statistics statistics{};

  void say(std::string_view words) noexcept { words.copy(text.data(), text.size() - 1); }
};
static_assert(std::is_trivially_copyable_v<Report>);

}  // namespace tonari::far
