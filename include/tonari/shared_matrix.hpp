#pragma once

#include <tonari/job.hpp>
#include <tonari/share.hpp>
#include <tonari/status.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>

namespace tonari {

/// The same in all ranks.
struct MatrixOptions {
  /// Each row starts on a page, so that no page holds rows of two ranks and there is no false sharing. This costs up to
  /// a page per row, and neighbours in a column compete for the same cache lines. Without it rows follow each other, as
  /// in an array, and two ranks share at most one page where their rows meet: better if a rank has many pages.
  bool rows_on_pages = false;
  bool homes_move = true;         ///< See ArrayOptions, also for the next two.
  bool writes_are_named = false;  ///< Named by wrote_rows().
  bool updates = false;
};

namespace detail {

/// The rank whose part of [0, count) contains `index`: see part_of.
constexpr JobRank rank_with(std::size_t index, std::size_t count, int ranks) noexcept {
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t each = count / parts;
  const std::size_t larger = count % parts;
  const std::size_t in_larger = larger * (each + 1);
  return JobRank{index < in_larger ? index / (each + 1) : larger + (index - in_larger) / each};
}

}  // namespace detail

/// Rows of T that all ranks share. Each rank is the home of its part of the rows, as part_of() divides them, so that
/// parallel_for over the rows works where they are. Zero at first. Created and destroyed collectively, with the
/// consistency and the errors of a shared_array.
template <class T>
class shared_matrix {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory carries bytes: T must be trivially copyable");
  static constexpr std::size_t page_bytes = 4096;
  static_assert(alignof(T) <= page_bytes);

 public:
  shared_matrix(Job& job, std::size_t rows, std::size_t columns, const MatrixOptions& options = {})
      : rank_(job.rank()),
        ranks_(job.size()),
        rows_(rows),
        columns_(columns),
        row_bytes_(row_bytes_of(columns, options)),
        memory_(detail::make_memory(job, product(rows, row_bytes_), options_of(options))) {}

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::span<T> row(std::size_t i) const noexcept {
    return {reinterpret_cast<T*>(memory().bytes().data() + i * row_bytes_), columns_};
  }
  /// The same as row(i), so that matrix[i][j] is an element.
  [[nodiscard]] std::span<T> operator[](std::size_t i) const noexcept { return row(i); }
  [[nodiscard]] T& operator()(std::size_t i, std::size_t j) const noexcept { return row(i)[j]; }
  /// Distance from one row to the next.
  [[nodiscard]] std::size_t row_bytes() const noexcept { return row_bytes_; }

  [[nodiscard]] share::Part rows_of(JobRank rank) const noexcept { return share::part_of(rows_, rank, ranks_); }
  /// This rank's rows, for loops: for (std::size_t i : matrix.own_rows()).
  [[nodiscard]] auto own_rows() const noexcept {
    const share::Part own = rows_of(rank_);
    return std::views::iota(own.first, own.first + own.count);
  }

  /// Fetches rows that this rank will read, all at once: for instance its neighbours' rows next to its own.
  void prefetch_rows(std::size_t first, std::size_t count) const noexcept {
    memory().prefetch(product(first, row_bytes_), product(count, row_bytes_));
  }
  /// Collective. The same as shared_array::barrier_with_multicast, for rows. The same statuses.
  Status barrier_with_multicast(std::size_t first, std::size_t count) const noexcept {
    const bool is_in = first <= rows_ && count <= rows_ - first;
    return memory().barrier_with_multicast(is_in ? first * row_bytes_ : too_many,
                                           is_in ? count * row_bytes_ : too_many);
  }
  /// Names rows that this rank has written since it last synchronised: see ArrayOptions::writes_are_named.
  void wrote_rows(std::size_t first, std::size_t count) const noexcept {
    memory().wrote(product(first, row_bytes_), product(count, row_bytes_));
  }

 private:
  static constexpr std::uint64_t too_many = ~std::uint64_t{0};  // refused

  static std::uint64_t product(std::uint64_t count, std::uint64_t each) noexcept {
    return each != 0 && count > too_many / each ? too_many : count * each;
  }
  static std::uint64_t row_bytes_of(std::size_t columns, const MatrixOptions& options) noexcept {
    const std::uint64_t bytes = product(columns, sizeof(T));
    if (!options.rows_on_pages || bytes > too_many - page_bytes) return bytes;
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  // The home of a page that holds rows of two ranks is the first of these ranks.
  [[nodiscard]] ArrayOptions options_of(const MatrixOptions& options) const {
    ArrayOptions all;
    all.placement = Placement::by_function;
    all.home = [row_bytes = row_bytes_, rows = rows_, ranks = ranks_](std::uint64_t offset) {
      return row_bytes == 0 || rows == 0 ? JobRank{0} : detail::rank_with(offset / row_bytes, rows, ranks);
    };
    all.homes_move = options.homes_move;
    all.writes_are_named = options.writes_are_named;
    all.updates = options.updates;
    return all;
  }
  [[nodiscard]] detail::Memory& memory() const noexcept {
    assert(memory_ != nullptr && "a shared_matrix is used that was moved from");
    return *memory_;
  }

  JobRank rank_;
  int ranks_;
  std::size_t rows_;
  std::size_t columns_;
  std::uint64_t row_bytes_;
  std::shared_ptr<detail::Memory> memory_;
};

}  // namespace tonari
