#pragma once

#include "pager/page.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tonari::pager {

/// What a fault tells about those to come. Pages are numbered through the whole address space.
struct Advice {
  // What to bring for this fault: some pages of its block, or all of it.
  bool by_block = false;
  std::uint64_t first = 0;
  unsigned pages = 1;
  bool backwards = false;
  // Then page `ahead`, and so on in steps of `step` pages, `count` in all: whole blocks, if it is by blocks.
  std::uint64_t ahead = 0;
  std::int64_t step = 0;
  unsigned count = 0;
  std::optional<std::uint64_t> passed{};  // a page of the block that the stream has left behind
};

/// Finds streams among faults: forwards, backwards, and in strides, several at once, each told by where it goes on and,
/// in doubt, by its thread. The longer one has lasted, the more is brought at a time and ahead of it.
///
///    a fault anywhere               a page
///    just where it goes on          2, 4, 8, .. 256 pages, then the rest of its block,
///                                   then whole blocks, 1, 2, 4 of them ahead
///    a little further on            half of what came last: it may be chance
///    the fourth in short strides    likewise, as of a stream that has just begun
///    the fourth in longer ones      a page each, 2, 4, .. 16 strides ahead
///
/// So what comes for nothing is no more than what was asked for, by and large.
///
/// Threads: one. Costs: some tens of ns for a fault, no allocation.
class Streams {
 public:
  static constexpr std::size_t streams_max = 16;     // that have proved themselves
  static constexpr std::size_t candidates_max = 32;  // faults that may become one

  /// `by_block`: the fault's block, or what is away of it, may come at once.
  Advice fault(std::uint64_t page, std::uint32_t thread, bool by_block) noexcept;

 private:
  struct Stream {
    bool exists = false;
    std::uint32_t thread = 0;
    std::uint64_t used = 0;  // the fault's number
    std::uint64_t last = 0;  // page that faulted
    std::uint64_t low = 0;   // covered: pages low to high - 1
    std::uint64_t high = 0;
    std::int64_t step = 1;
    std::uint64_t far = 0;  // a strided one has been read ahead to here
    unsigned run = 1;       // pages that may come at a time
    unsigned depth = 0;     // how far ahead

    [[nodiscard]] bool is_strided() const noexcept;
    [[nodiscard]] bool is_next(std::uint64_t page, std::uint64_t gap) const noexcept;
  };
  static constexpr std::uint64_t slack_pages = 8;         // that a stream may leave out; larger steps are strides
  static constexpr std::uint64_t faults_until_old = 256;  // then it would be chance, or does not matter
  static constexpr std::uint64_t slack_pages_by_blocks = 16 * block_pages;
  static constexpr std::int64_t stride_pages_max =
      block_pages - 1;  // beyond, streams by blocks would look like strides
  static constexpr unsigned blocks_ahead_max = 4;
  static constexpr unsigned strides_ahead_max = 16;

  Stream* find(std::uint64_t page, std::uint32_t thread) noexcept;
  Stream* find_strided(std::uint64_t page, std::uint32_t thread) noexcept;
  void find_third(std::uint64_t page, std::uint32_t thread) noexcept;
  Stream& promote(const Stream& stream) noexcept;
  Advice go_on(Stream& stream, std::uint64_t page, bool by_block) noexcept;
  Advice go_on_in_strides(Stream& stream, std::uint64_t page) noexcept;
  void begin(std::uint64_t page, std::uint32_t thread) noexcept;

  std::array<Stream, streams_max> proven_{};
  std::array<Stream, candidates_max> candidates_{};
  std::uint64_t faults_ = 0;
};

}  // namespace tonari::pager
