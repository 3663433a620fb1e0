#pragma once

#include "pager/policy.hpp"
#include "pager/space.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tonari::pager {

/// Records which buffers are free, and for which blocks the others are kept. A free buffer is empty or *pre-faulted*:
/// it has all of its pages, with contents that do not matter, so that it can be filled at once.
///
///    free, empty  --take-->  somebody works with it  --keep-->  kept: taken_out | ahead
///    free, prefaulted ------^     |      ^                            |
///          ^----give_back------+      +------------take_back-------+
///
/// Threads: one at a time.
/// Costs:   a look at each buffer; no allocation after construction.
class Pool {
 public:
  enum class Kind : std::uint8_t {
    taken_out,  ///< Its pages may be wanted again.
    ahead,      ///< A stream has been predicted to want its pages soon.
  };
  struct Kept {
    Buffer buffer;
    PolicyEntry* owner;
  };

  /// The pool has the buffers `first` to `end - 1` of a space.
  Pool(std::size_t first, std::size_t end);

  std::optional<Buffer> take_empty() noexcept { return take(State::empty); }
  std::optional<Buffer> take_prefaulted() noexcept { return take(State::prefaulted); }
  void give_back(Buffer buffer, bool prefaulted) noexcept;
  void keep(Buffer buffer, PolicyEntry& owner, Kind kind) noexcept;
  void take_back(Buffer buffer) noexcept;

  /// Returns the buffer of this kind that has been kept for longest, or nullopt. The buffer moves to the end of the
  /// order: if its block is held, the next call returns another buffer.
  std::optional<Kept> oldest(Kind kind) noexcept;
  /// Returns how many buffers were kept since the oldest of this kind.
  [[nodiscard]] std::uint64_t age(Kind kind) const noexcept;
  [[nodiscard]] bool is_ahead(Buffer buffer) const noexcept { return at(buffer).state == State::ahead; }
  [[nodiscard]] std::size_t kept(Kind kind) const noexcept { return count(state_of(kind)); }
  [[nodiscard]] std::size_t prefaulted() const noexcept { return count(State::prefaulted); }

 private:
  enum class State : std::uint8_t { empty, prefaulted, taken, taken_out, ahead };
  struct Record {
    State state = State::empty;
    PolicyEntry* owner = nullptr;
    std::uint64_t since = 0;
  };

  static constexpr State state_of(Kind kind) noexcept {
    return kind == Kind::taken_out ? State::taken_out : State::ahead;
  }
  std::optional<Buffer> take(State state) noexcept;
  [[nodiscard]] std::size_t count(State state) const noexcept;
  [[nodiscard]] Record& at(Buffer buffer) noexcept { return records_[static_cast<std::size_t>(buffer) - first_]; }
  [[nodiscard]] const Record& at(Buffer buffer) const noexcept {
    return records_[static_cast<std::size_t>(buffer) - first_];
  }

  std::size_t first_;
  std::vector<Record> records_;
  std::uint64_t time_ = 0;
};

}  // namespace tonari::pager
