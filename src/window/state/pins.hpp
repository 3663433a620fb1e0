#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace tonari::window {

/// The memory that windows of this rank keep from being swapped. The system does not count how often a page was locked:
/// a page is unlocked when no window needs it any more.
///
/// Threads: any.
class Pins {
 public:
  /// Locks whole pages. Throws SetupError that names the limit.
  void pin(std::span<const std::byte> bytes);
  /// Takes back one pin() of the same bytes.
  void unpin(std::span<const std::byte> bytes) noexcept;

 private:
  struct Pages {
    std::size_t first;  // addresses
    std::size_t end;

    friend bool operator==(const Pages&, const Pages&) = default;
  };
  static Pages pages_of(std::span<const std::byte> bytes) noexcept;
  void unlock_what_nobody_needs(Pages pages) noexcept;

  std::mutex mutex_;  // of the next
  std::vector<Pages> pinned_;
};

}  // namespace tonari::window
