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

inline constexpr std::uint64_t pool_granule_bytes = 2 << 20;  // a huge page
inline constexpr std::uint32_t pool_granules_max =
    ~std::uint32_t{0};  // 8 PiB: a file's bytes cost nothing until touched

/// Memory that the ranks of a host make and share while the job runs: the end of the arena's file, handed out from its
/// start on. A place is never handed out again, so whoever looks at one that was given back finds zeros or nothing, and
/// its number can be a name for ever. Fresh memory is zero.
///
/// Owns:    nothing but the list of what this process has mapped.
/// Threads: any thread, any process that maps the arena.
class Pool {
 public:
  /// Of the arena's file, from byte `start` on.
  Pool(int file, std::uint64_t start, ArenaHeader& header) noexcept : file_(file), start_(start), header_(&header) {}

  /// Granules for so many bytes; the number of the first, never 0. Throws SetupError when the memory is not there, or
  /// no number is left.
  [[nodiscard]] std::uint32_t take(std::uint64_t bytes);
  /// True for what take() has answered, and for granules in the middle of that.
  [[nodiscard]] bool is_taken(std::uint32_t granule) const noexcept;
  /// Maps the first `bytes` from a granule on. Whoever asks for the same granule in this process gets the same mapping,
  /// as long as it is in use: ranks that are threads share it. Throws SetupError.
  [[nodiscard]] std::shared_ptr<Mapping> map(std::uint32_t granule, std::uint64_t bytes);
  /// One of its own, for a look.
  [[nodiscard]] Mapping look(std::uint32_t granule, std::uint64_t bytes) const;
  /// Maps `bytes` of the arena's file, from byte `place` of it on, at an address that the caller has. Throws
  /// SetupError.
  void map_at(std::byte* address, std::uint64_t place, std::uint64_t bytes) const;
  /// Where in the arena's file a byte lies that this process has mapped.
  [[nodiscard]] std::optional<std::uint64_t> place_of(const std::byte* byte);
  /// Gives the memory back to the system. Its content is lost to all.
  void give_back(std::uint32_t granule, std::uint64_t bytes) noexcept;

 private:
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t granule) const noexcept {
    return start_ + (granule - 1) * pool_granule_bytes;
  }

  int file_;
  std::uint64_t start_;
  ArenaHeader* header_;
  std::mutex mutex_;  // of the next
  std::map<std::uint32_t, std::weak_ptr<Mapping>> mapped_;
};

}  // namespace tonari::job
