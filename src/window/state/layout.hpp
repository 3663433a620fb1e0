#pragma once

#include "base/cache.hpp"

#include <tonari/window.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tonari::window {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint64_t header_magic = 0x776f'646e'6977'a56f;

// A window in a host's pool (job/pool.hpp). The number of its first granule makes the window's number. *Members* are
// the ranks that may reach it: its group. Each has a part, perhaps of 0 bytes. A window that spans hosts is laid out so
// on each host, for the members there. The lines of the other members stay empty (remote/copies.hpp), but their slots
// in locks are used.
//
//   0        64                                                                          page          page
//   +--------+------------+--------------+--------------+---------------------------------+-------------+--
//   | header | members: n | arrivals: n  | accesses: n  | of each part: rights, counters, | part 0 (if  | ..
//   |        | lines      | lines        | lines        | locks                           | it is ours) |
//   +--------+------------+--------------+--------------+---------------------------------+-------------+--
//
// The rank that makes the window lays it out. Each member completes its own line; when `ready` == `here`, the window is
// complete.
//
// I1  a part is accessed only while it is present; accesses to a program's     WindowState::reach_program, free_part
//     memory are counted while under way, so that the rank that frees it can
//     wait for them
// I2  the memory is given back when the last of `holders` has gone, and the number is not used again
struct alignas(line_bytes) Header {
  std::uint64_t magic = 0;  // header_magic ^ granule: no other memory has it by chance
  std::uint32_t here = 0;   // number of members of this host
  std::uint32_t members = 0;
  std::uint64_t bytes = 0;              // of the whole window
  std::uint32_t alone = 0;              // 1: a local window of one rank
  std::atomic<std::uint32_t> ready{0};  // members of this host that have completed their lines
  std::atomic<std::uint32_t> holders{0};
  std::atomic<std::uint64_t> released{0};  // between hosts: a Met, the last barrier that all hosts have entered
};

inline constexpr std::uint64_t part_bytes_max = std::uint64_t{1} << 47;  // no process has more address space

struct alignas(line_bytes) Member {
  std::atomic<PartState> state{PartState::absent};
  std::uint32_t in_program = 0;        // 1: the program's own memory, mapped only there
  std::uint64_t bytes = 0;             // of the part
  std::uint64_t place = 0;             // of the part, from the start of the window; if in_program, its address there
  std::uint64_t rights_at = 0;         // 0: all members have `rights`; otherwise place of one byte per member
  std::uint64_t notifications_at = 0;  // of 8-byte counters
  std::uint64_t locks_at = 0;
  std::uint32_t notifications = 0;
  std::uint32_t locks = 0;
  Rights rights = Rights::none;
};

/// A number that one rank writes and other ranks read.
struct alignas(line_bytes) Line {
  std::atomic<std::uint64_t> value{0};
};
/// Counts one rank's accesses to programs' memory that are under way: to members whose index leaves this remainder. So
/// a rank that frees its part need not wait for a moment without any access to other parts.
struct alignas(line_bytes) Accesses {
  std::array<std::atomic<std::uint64_t>, 8> to{};
};
static_assert(sizeof(Header) == line_bytes && sizeof(Member) == line_bytes && sizeof(Line) == line_bytes &&
              sizeof(Accesses) == line_bytes);

/// A member's gift, as far as the layout depends on it.
struct Gift {
  std::uint64_t bytes = 0;
  std::uint32_t locks = 0;
  std::uint32_t notifications = 0;
  bool in_program = false;
  bool rights_differ = false;
  bool present = true;  // false: it only reaches the others' parts, or gives its own on another host
};

/// The places of everything in a window.
class Layout {
 public:
  static std::uint64_t fixed_bytes(std::size_t members) noexcept {
    return sizeof(Header) + members * (sizeof(Member) + sizeof(Line) + sizeof(Accesses));
  }
  /// Sets the places in `members` and returns the size of the window; 0 if that overflows.
  static std::uint64_t lay_out(std::span<const Gift> gifts, std::span<Member> members) noexcept;

  Layout() noexcept = default;
  explicit Layout(std::byte* start) noexcept : start_(start), members_(header().members) {}

  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(start_); }
  [[nodiscard]] Member& member(std::size_t index) const noexcept {
    return reinterpret_cast<Member*>(start_ + sizeof(Header))[index];
  }
  /// Returns the number of barriers that a member has entered.
  [[nodiscard]] std::atomic<std::uint64_t>& arrival(std::size_t index) const noexcept {
    return reinterpret_cast<Line*>(lines())[index].value;
  }
  /// Returns the counter of a member's accesses under way to the program's memory of member `to`, and perhaps of some
  /// others.
  [[nodiscard]] std::atomic<std::uint64_t>& accesses(std::size_t index, std::size_t to) const noexcept {
    Accesses& of = reinterpret_cast<Accesses*>(lines() + members_ * sizeof(Line))[index];
    return of.to[to % of.to.size()];
  }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return start_ + offset; }
  [[nodiscard]] std::atomic<std::uint64_t>& notification(const Member& of, std::uint32_t number) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(start_ + of.notifications_at)[number];
  }
  [[nodiscard]] Rights rights(const Member& of, std::size_t member) const noexcept {
    return of.rights_at == 0 ? of.rights : reinterpret_cast<const Rights*>(start_ + of.rights_at)[member];
  }

 private:
  [[nodiscard]] std::byte* lines() const noexcept { return start_ + sizeof(Header) + members_ * sizeof(Member); }

  std::byte* start_ = nullptr;
  std::size_t members_ = 0;
};

}  // namespace tonari::window
