#pragma once

#include "pager/page.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tonari::pager {

/// Predicts the next faults from a fault. Pages are numbered through the whole address space.
struct Advice {
  // The pages to bring for this fault: some pages of its block, or the whole block.
  bool by_block = false;
  std::uint64_t first = 0;
  unsigned pages = 1;
  unsigned every = 1;  // of these pages, only the page that faulted, and the pages at a multiple of this from it
  bool backwards = false;
  // Pages to read ahead: page `ahead`, and so on in steps of `step` pages, `count` in all; whole blocks if `by_block`.
  std::uint64_t ahead = 0;
  std::int64_t step = 0;
  unsigned count = 0;
  std::optional<std::uint64_t> passed{};  // a page of the block that the stream has left behind
};

/// Finds streams among the faults: forwards, backwards, and with strides; several at once. A stream is recognised by
/// the page where it continues and, in doubt, by its thread. The longer it has lasted, the more is brought at a time
/// and read ahead.
///
///   a fault anywhere               one page
///   exactly where it continues     2, 4, 8, .. 256 pages, then the rest of its block,
///                                  then whole blocks, 1, 2, 4 of them ahead
///   a little further on            half of the last number of pages: it may be chance
///   the fourth in short strides    the same as a stream that has just begun
///   after 1 MiB of them            only the pages of the strides, until one between them is wanted soon
///   the fourth in longer strides   a page each, 2, 4, .. 16 strides ahead
///
/// So the pages that are brought in vain are, by and large, no more than the pages that were wanted.
///
/// Threads: one.
/// Costs:   some tens of ns per fault, no allocation.
class Streams {
 public:
  static constexpr std::size_t streams_max = 16;     // proven streams
  static constexpr std::size_t candidates_max = 32;  // faults that may become a stream

  /// `by_block`: the fault's block, or all pages of it that are away, may be brought at once.
  Advice fault(std::uint64_t page, std::uint32_t thread, bool by_block) noexcept;

 private:
  struct Stream {
    bool exists = false;
    std::uint32_t thread = 0;
    std::uint64_t used = 0;  // number of the last fault
    std::uint64_t last = 0;  // page that faulted
    std::uint64_t low = 0;   // covered: pages low to high - 1
    std::uint64_t high = 0;
    std::int64_t step = 1;
    std::uint64_t read_ahead_to = 0;  // strided: last page that was read ahead
    unsigned run = 1;                 // pages that may be brought at a time
    unsigned depth = 0;               // blocks or strides to read ahead
    bool is_dense = false;            // pages between its strides were wanted soon

    [[nodiscard]] bool is_strided() const noexcept;
    [[nodiscard]] bool is_sparse() const noexcept;
    [[nodiscard]] bool is_next(std::uint64_t page, std::uint64_t gap) const noexcept;
  };
  static constexpr std::uint64_t slack_pages = 8;  // pages that a stream may skip; larger steps are strides
  // The pages between short strides are brought, too, in case that the program returns for them soon. A walk over that
  // many pages has not returned. Strides of 2 pages bring no more pages in vain than were wanted.
  static constexpr std::uint64_t walk_pages_max = 256;
  static constexpr std::uint64_t faults_until_old = 256;  // after that many other faults, a match would be chance
  static constexpr std::uint64_t slack_pages_by_blocks = 16 * block_pages;
  static constexpr std::int64_t stride_pages_max =
      block_pages - 1;  // beyond that, streams by blocks would look like strides
  static constexpr unsigned blocks_ahead_max = 4;
  static constexpr unsigned strides_ahead_max = 16;

  Stream* find(std::uint64_t page, std::uint32_t thread) noexcept;
  Stream* find_strided(std::uint64_t page, std::uint32_t thread) noexcept;
  Stream* find_returned_to(std::uint64_t page, std::uint32_t thread) noexcept;
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
