#pragma once

#include "fabric/engine.hpp"
#include "window/state/layout.hpp"
#include "window/state/members.hpp"

#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tonari::window {

/// A member's gift to a window: the arguments of Window's constructors.
struct Offer {
  std::uint64_t bytes = 0;
  std::byte* memory = nullptr;  // the program's memory; nullptr: tonari's
  bool in_program = false;
  WindowOptions options{};
  bool present = true;  // false: it gives no part, and only reaches another rank's
};

using detail::Part;

/// The parts of a window, as this rank may access them: the tables of MLC-1 that translate and protect addresses.
///
/// Threads: any, except for give() and open().
class Parts {
 public:
  /// `window`: its number.
  Parts(fabric::Engine& engine, const Members& members, const Layout& layout, std::uint32_t window);
  Parts(Parts&&) = delete;
  /// Completes this rank's line.
  void give(const Offer& offer);
  /// Fills the table, once all members' lines are complete. `memory`: the whole window, of which the parts without
  /// rights are protected. Throws SetupError.
  void open(std::span<std::byte> memory);
  /// True once the table is filled. The serving thread may run earlier. Acquire: the table.
  [[nodiscard]] bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }

  /// Returns the table for the inline calls of Window. The parts stay where they are.
  [[nodiscard]] detail::PartTable table() const noexcept { return {parts_.data(), parts_.size(), window_}; }
  /// Returns the part of rank `rank`, or null if there is no such rank. The part may be absent.
  [[nodiscard]] const Part* find(JobRank rank) const noexcept {
    return rank.index() < parts_.size() ? &parts_[rank.index()] : nullptr;
  }
  /// Checks an access of this rank, and returns the part that it accesses in `part`.
  Status check(GlobalAddress address, std::uint64_t bytes, Rights needed, const Part*& part) const noexcept;
  /// Returns the global address of a byte of a mapped part.
  [[nodiscard]] std::optional<GlobalAddress> global(const void* pointer) const noexcept;

  // This rank's own part
  [[nodiscard]] std::span<std::byte> own() const noexcept { return {own_, own_bytes_}; }
  /// Returns true if it is its program's memory.
  [[nodiscard]] bool own_in_program() const noexcept { return own_in_program_; }
  /// Returns the rights that this rank gives, by member.
  [[nodiscard]] std::span<const Rights> given() const noexcept { return given_; }
  [[nodiscard]] bool is_present() const noexcept {
    return layout_.member(members_.self()).state.load(std::memory_order_acquire) == PartState::present;
  }
  /// Checks for the service whether rank `peer` may access this rank's own part. Returns the place in `there`.
  Status check_request(int peer, std::uint64_t offset, std::uint64_t bytes, Rights needed,
                       std::byte*& there) const noexcept;

 private:
  void set_rights(const WindowOptions& options, Member& own);
  void open_local(std::size_t member, Part& part) const noexcept;
  void open_remote(std::size_t member, Part& part) const noexcept;
  void protect(std::span<std::byte> memory) const;

  fabric::Engine& engine_;
  const Members& members_;
  const Layout& layout_;
  const std::uint32_t window_;
  std::vector<Part> parts_;           // by job rank
  std::atomic<bool> is_open_{false};  // release: the parts
  // Kept here, because other ranks could overwrite this rank's line by mistake.
  std::byte* own_ = nullptr;
  std::uint64_t own_bytes_ = 0;
  bool own_in_program_ = false;
  std::vector<Rights> given_;
};

// PartTable::find_mapped() makes the same checks.
inline Status Parts::check(GlobalAddress address, std::uint64_t bytes, Rights needed,
                           const Part*& part) const noexcept {
  if (address.window != window_ || address.rank.index() >= parts_.size()) return Status::bounds;
  const Part& found = parts_[address.rank.index()];
  if (found.state == nullptr || !found.contains(address.offset, bytes)) return Status::bounds;
  if (!includes(found.rights, needed)) return Status::denied;
  if (!engine_.session().alive(address.rank.value())) return Status::peer_gone;
  if (found.state->load(std::memory_order_acquire) != PartState::present) return Status::bounds;
  part = &found;
  return Status::ok;
}

}  // namespace tonari::window
