#pragma once

#include "share/guarded/replica_table.hpp"

#include <tonari/guarded.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tonari::share {

/// The implementation of a guarded variable. On one host it is a window that all ranks map, and one of its locks; in a
/// job of several hosts it is a Replica.
///
/// Threads: any, but for construction and destruction.
class Guarded {
 public:
  /// Collective. Throws SetupError, in all ranks.
  Guarded(Job& job, std::size_t count, std::size_t element_bytes, const GuardedOptions& options,
          std::span<const std::byte> initial);
  Guarded(Guarded&&) = delete;
  ~Guarded();

  Status lock(Use use) noexcept;
  Status try_lock(Use use) noexcept;
  Status unlock(Use use) noexcept;
  /// Returns the data. Builds with assertions report misuse if the variable is not locked for `use`.
  [[nodiscard]] std::byte* bytes(Use use) const noexcept;
  [[nodiscard]] Replica* replica() const noexcept { return replica_.get(); }  // null in a job on one host

 private:
  void map(Job& job, std::size_t bytes, std::span<const std::byte> initial);
  /// Ends the program with a message about its mistake, in builds with assertions.
  void name_misuse(const char* what) const noexcept;
  void count(Use use, Status locked) noexcept;
  [[nodiscard]] bool is_locked(Use use) const noexcept;

  job::Session& session_;
  int home_;
  std::shared_ptr<Replica> replica_;
  std::optional<Window> window_;  // in a job on one host, like the next four
  std::byte* data_ = nullptr;
  std::uint64_t counter_at_ = 0;           // offset in the window, after the data
  std::atomic<std::uint32_t> readers_{0};  // of this rank; relaxed, like the next: only to report misuse
  std::atomic<bool> writing_{false};
};

}  // namespace tonari::share
