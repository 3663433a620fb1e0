#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace tonari::window {

/// The memory that windows of this rank lock, so that it is not swapped. The kernel does not count how often a page was
/// locked, so a page is unlocked only when no window needs it any more.
///
/// Threads: any.
class Pins {
 public:
  /// Locks whole pages. Throws SetupError, which names the limit.
  void pin(std::span<const std::byte> bytes);
  /// Undoes one pin() of the same bytes.
  void unpin(std::span<const std::byte> bytes) noexcept;

 private:
  struct Pages {
    std::size_t first;  // both are addresses
    std::size_t end;

    friend bool operator==(const Pages&, const Pages&) = default;
  };
  static Pages pages_of(std::span<const std::byte> bytes) noexcept;
  void unlock_what_nobody_needs(Pages pages) noexcept;

  std::mutex mutex_;  // guards pinned_
  std::vector<Pages> pinned_;
};

}  // namespace tonari::window
