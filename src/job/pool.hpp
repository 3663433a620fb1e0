#pragma once

#include "base/mapping.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace tonari::job {

struct ArenaHeader;

inline constexpr std::uint64_t pool_granule_bytes = 2 << 20;  // the size of a huge page
inline constexpr std::uint32_t pool_granules_max =
    ~std::uint32_t{0};  // 8 PiB: a sparse file costs nothing until touched

/// Memory that the ranks of a host allocate and share while the job runs. It is the end of the arena's file, handed out
/// from its start on. No granule is ever handed out twice: a rank that maps a freed granule finds zeros, and a
/// granule's number can serve as a permanent name. Fresh memory is zero.
///
/// Owns:    only the list of the parts that this process has mapped.
/// Threads: any thread, any process that maps the arena.
class Pool {
 public:
  /// The pool in the arena's file, from byte `start` on.
  Pool(int file, std::uint64_t start, ArenaHeader& header) noexcept : file_(file), start_(start), header_(&header) {}

  /// Takes granules for `bytes` and returns the number of the first, which is never 0. Throws SetupError if there is
  /// not enough memory, or if no numbers are left.
  [[nodiscard]] std::uint32_t take(std::uint64_t bytes);
  /// True if take() has handed out this granule, as the first or any other of an allocation.
  [[nodiscard]] bool is_taken(std::uint32_t granule) const noexcept;
  /// Maps `bytes` from a granule on. Calls for the same granule in one process return the same mapping as long as it is
  /// in use, so that ranks that are threads share it. Throws SetupError.
  [[nodiscard]] std::shared_ptr<Mapping> map(std::uint32_t granule, std::uint64_t bytes);
  /// Makes a separate mapping, for a short look.
  [[nodiscard]] Mapping look(std::uint32_t granule, std::uint64_t bytes) const;
  /// Maps `bytes` of the arena's file, from its byte `place` on, at an address range that the caller owns. Throws
  /// SetupError.
  void map_at(std::byte* address, std::uint64_t place, std::uint64_t bytes) const;
  /// Returns the offset in the arena's file of a byte that this process has mapped by map(); empty if it has not.
  [[nodiscard]] std::optional<std::uint64_t> place_of(const std::byte* byte);
  /// Returns the memory to the system. Its contents are lost for all ranks.
  void give_back(std::uint32_t granule, std::uint64_t bytes) noexcept;

 private:
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t granule) const noexcept {
    return start_ + (granule - 1) * pool_granule_bytes;
  }

  int file_;
  std::uint64_t start_;
  ArenaHeader* header_;
  std::mutex mutex_;  // protects mapped_
  std::map<std::uint32_t, std::weak_ptr<Mapping>> mapped_;
};

}  // namespace tonari::job
