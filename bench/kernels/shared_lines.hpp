#pragma once

#include "kernels/bands.hpp"

#include <tonari/share.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench {

inline void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(std::string(explain(status)));
}

/// How shared lines are placed, and how their writes are found.
struct Sharing {
  bool named = false;      ///< The program names the lines that others read.
  bool misplaced = false;  ///< Homes alternate between ranks, instead of being on the rank that writes.
};

/// Bands in a shared array. Each begins on a page of its own, whose home is the rank that computes the band.
template <class T>
class SharedLines {
 public:
  SharedLines(Job& job, const Bands& bands, const Sharing& sharing)
      : bands_(bands),
        rank_(job.rank().value()),
        named_(sharing.named),
        starts_(starts_of(bands)),
        array_(job, starts_.back(), options_of(sharing)),
        lines_(bands.lines()) {
    for (int rank = 0; rank < bands.ranks; ++rank) {
      const Band own = bands.owned(rank);
      T* const start = array_.data() + starts_[static_cast<std::size_t>(rank)];
      for (std::size_t line = own.first; line < own.end; ++line) {
        lines_[line] = start + (line - own.first) * bands.width;
      }
    }
  }

  [[nodiscard]] const Lines<T>& lines() const noexcept { return lines_; }

  /// Names the whole band.
  void wrote_all() const {
    const Band own = bands_.owned(rank_);
    if (named_) array_.wrote(index(own.first), (own.end - own.first) * bands_.width);
  }
  /// Names the lines that the neighbours read; call it after writing the band. Other ranks may read the other lines
  /// only after wrote_all().
  void wrote_edges() const {
    if (!named_) return;
    const Band band = bands_.of(rank_);
    if (rank_ != 0) array_.wrote(index(band.first), bands_.width);
    if (rank_ + 1 != bands_.ranks) array_.wrote(index(band.end - 1), bands_.width);
  }
  /// Names elements of a line; call it after writing them.
  void wrote(std::size_t line, std::size_t first, std::size_t count) const {
    if (named_) array_.wrote(index(line) + first, count);
  }
  /// Starts fetching the neighbours' lines.
  void prefetch_neighbours() const {
    const Band band = bands_.of(rank_);
    if (rank_ != 0) array_.prefetch(index(band.first - 1), bands_.width);
    if (rank_ + 1 != bands_.ranks) array_.prefetch(index(band.end), bands_.width);
  }

 private:
  static constexpr std::size_t page_elements = 4096 / sizeof(T);

  /// The first element of each band, and the end.
  static std::vector<std::size_t> starts_of(const Bands& bands) {
    std::vector<std::size_t> starts{0};
    for (int rank = 0; rank < bands.ranks; ++rank) {
      const Band own = bands.owned(rank);
      const auto pages = ((own.end - own.first) * bands.width + page_elements - 1) / page_elements;
      starts.push_back(starts.back() + pages * page_elements);
    }
    return starts;
  }
  [[nodiscard]] ArrayOptions options_of(const Sharing& sharing) const {
    ArrayOptions options;
    options.writes_are_named = sharing.named;
    options.updates = sharing.named;  // a rank that reads a line reads it in every step
    if (sharing.misplaced) {
      options.placement = Placement::cyclic;
      options.cyclic_bytes = 16 * 4096;
      return options;
    }
    options.placement = Placement::by_function;
    options.home = [this](std::uint64_t offset) {
      return JobRank{std::ranges::upper_bound(starts_, offset / sizeof(T)) - starts_.begin() - 1};
    };
    return options;
  }
  [[nodiscard]] std::size_t index(std::size_t line) const noexcept {
    return static_cast<std::size_t>(lines_[line] - array_.data());
  }

  Bands bands_;
  int rank_;
  bool named_;
  std::vector<std::size_t> starts_;
  shared_array<T> array_;
  Lines<T> lines_;
};

}  // namespace tonari::bench
