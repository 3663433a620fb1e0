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

/// What stands behind guarded data of the program: on one host a window, whose bytes all map, and a lock of it; else a
/// Guard.
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
  /// Says so where it is not locked.
  [[nodiscard]] std::byte* bytes(Use use) const noexcept;
  [[nodiscard]] Replica* guard() const noexcept { return guard_.get(); }  // null: on one host

 private:
  void map(Job& job, std::size_t bytes, std::span<const std::byte> initial);
  /// What a mistake of the program ends in, where there are assertions.
  void name_misuse(const char* what) const noexcept;
  void count(Use use, Status locked) noexcept;
  [[nodiscard]] bool is_locked(Use use) const noexcept;

  job::Session& session_;
  int home_;
  std::shared_ptr<Replica> guard_;
  std::optional<Window> window_;  // on one host, as the next four
  std::byte* data_ = nullptr;
  std::uint64_t counter_at_ = 0;           // behind the data
  std::atomic<std::uint32_t> readers_{0};  // of this rank; relaxed, as the next: only to name misuse
  std::atomic<bool> writing_{false};
};

}  // namespace tonari::share
