#pragma once

#include <tonari/far.h>
#include <tonari/status.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <span>

/// Far memory by name: for data that a program wants there whatever its size, and for hints. A program needs nothing of
/// this header to run under `tonari far`; without `tonari far` it gets ordinary memory. docs/guide/far-memory.md.
///
/// Threads: any.
namespace tonari::far {

enum class Hint : int {
  discard = TONARI_FAR_DISCARD,        ///< Its contents may be dropped: zeros from now on. Whole pages only.
  will_need = TONARI_FAR_WILL_NEED,    ///< It is used soon: fetch it. The call does not wait for that.
  done_with = TONARI_FAR_DONE_WITH,    ///< It is not used soon: evict it first. Only whole blocks of 2 MiB.
  sequential = TONARI_FAR_SEQUENTIAL,  ///< From now on it is read from one end to the other: ends `random`.
  random = TONARI_FAR_RANDOM,          ///< From now on it is read at random: fetch single pages.
};

/// True in a program that `tonari far` has started.
[[nodiscard]] inline bool available() noexcept { return tonari_far_available() != 0; }

/// Counters of far memory for this process; zeros if it has none.
[[nodiscard]] inline tonari_far_statistics statistics() noexcept {
  tonari_far_statistics found{};
  (void)tonari_far_get_statistics(&found, sizeof found);
  return found;
}

/// Tells far memory how the program will use `range`. Returns 0, or an error number: see tonari_far_advise.
template <class T>
int advise(std::span<T> range, Hint hint) noexcept {
  return tonari_far_advise(const_cast<void*>(static_cast<const void*>(range.data())), range.size_bytes(),
                           static_cast<int>(hint));
}

/// Allocates far memory for containers: std::vector<double, tonari::far::allocator<double>>. Each allocation takes
/// whole pages, so it is meant for large ones. Throws std::bad_alloc.
template <class T>
struct allocator {
  using value_type = T;

  allocator() noexcept = default;
  template <class Other>
  explicit(false) allocator(const allocator<Other>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    static_assert(alignof(T) <= 16, "without far memory, malloc aligns to 16 bytes: T must not need more");
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    if (void* const start = tonari_far_malloc(count * sizeof(T))) return static_cast<T*>(start);
    throw std::bad_alloc();
  }
  void deallocate(T* start, std::size_t /*count*/) noexcept { tonari_far_free(start); }

  template <class Other>
  friend bool operator==(const allocator& /*one*/, const allocator<Other>& /*other*/) noexcept {
    return true;
  }
};

}  // namespace tonari::far
