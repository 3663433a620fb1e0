#pragma once

#include "harness/wire.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench {

// A grid of lines (rows or planes), dealt to the ranks in bands. An element is computed from its neighbours.

/// The lines of a grid from `first` to before `end`.
struct Band {
  std::size_t first;
  std::size_t end;
};

/// Lines 1 to `inner` are computed. Lines 0 and inner + 1 are constant and belong to the first and the last rank.
struct Bands {
  std::size_t inner;
  std::size_t width;  // elements per line
  int ranks;

  Bands(std::size_t inner_lines, std::size_t elements, int parts) : inner(inner_lines), width(elements), ranks(parts) {
    if (inner < static_cast<std::size_t>(ranks)) {
      throw std::invalid_argument(std::to_string(inner) + " lines are too few for " + std::to_string(ranks) + " ranks");
    }
  }

  [[nodiscard]] std::size_t lines() const noexcept { return inner + 2; }
  /// Returns the lines that a rank computes.
  [[nodiscard]] Band of(int rank) const noexcept {
    const auto start = [&](int part) {
      return 1 + inner * static_cast<std::size_t>(part) / static_cast<std::size_t>(ranks);
    };
    return {start(rank), start(rank + 1)};
  }
  /// The same, with the constant lines.
  [[nodiscard]] Band owned(int rank) const noexcept {
    const Band band = of(rank);
    return {rank == 0 ? 0 : band.first, rank + 1 == ranks ? lines() : band.end};
  }
};

/// The address of each line of a grid; null for lines that this rank does not have.
template <class T>
using Lines = std::vector<T*>;

/// All lines, in memory of this process.
template <class T>
class LocalLines {
 public:
  LocalLines(LocalLines&&) noexcept = default;  // the lines keep their addresses
  explicit LocalLines(const Bands& bands) : values_(bands.lines() * bands.width), lines_(bands.lines()) {
    for (std::size_t line = 0; line < lines_.size(); ++line) lines_[line] = values_.data() + line * bands.width;
  }

  [[nodiscard]] const Lines<T>& lines() const noexcept { return lines_; }

 private:
  std::vector<T> values_;
  Lines<T> lines_;
};

/// A rank's band, and copies of the adjacent lines, which are received as messages.
template <StartedWire W, class T>
class MessageLines {
 public:
  MessageLines(W& wire, const Bands& bands)
      : wire_(wire), bands_(bands), band_(bands.of(wire.rank())), lines_(bands.lines()) {
    values_.resize((band_.end - band_.first + 2) * bands.width);
    for (std::size_t line = band_.first - 1; line <= band_.end; ++line) {
      lines_[line] = values_.data() + (line - band_.first + 1) * bands.width;
    }
  }

  [[nodiscard]] const Lines<T>& lines() const noexcept { return lines_; }

  /// Starts sending the band's first and last line to the neighbours, and receiving theirs. Until finish_exchange()
  /// returns, do not write the former and do not read the latter.
  void start_exchange() {
    const int rank = wire_.rank();
    if (rank != 0) {
      requests_.push_back(wire_.start_receive(message(band_.first - 1), rank - 1, tag_down));
      requests_.push_back(wire_.start_send(message(band_.first), rank - 1, tag_up));
    }
    if (rank + 1 != bands_.ranks) {
      requests_.push_back(wire_.start_receive(message(band_.end), rank + 1, tag_up));
      requests_.push_back(wire_.start_send(message(band_.end - 1), rank + 1, tag_down));
    }
  }
  void finish_exchange() {
    wire_.wait_all(requests_);
    requests_.clear();
  }

 private:
  static constexpr int tag_up = 51;
  static constexpr int tag_down = 52;

  [[nodiscard]] std::span<std::byte> message(std::size_t line) const noexcept {
    return std::as_writable_bytes(std::span(lines_[line], bands_.width));
  }

  W& wire_;
  Bands bands_;
  Band band_;
  std::vector<T> values_;
  Lines<T> lines_;
  std::vector<typename W::Request> requests_;
};

/// Returns the number of elements that differ in any bit from the expected ones.
template <class T>
std::size_t differing(const Lines<T>& lines, Band band, const Lines<T>& expected, std::size_t width) {
  std::size_t count = 0;
  for (std::size_t line = band.first; line < band.end; ++line) {
    for (std::size_t i = 0; i < width; ++i) count += lines[line][i] == expected[line][i] ? 0 : 1;
  }
  return count;
}

/// The same for the bands of all ranks, on rank 0, the only rank that uses `expected`. Every rank calls it.
template <StartedWire W, class T>
std::size_t differing_of_all(W& wire, const Bands& bands, const Lines<T>& mine, const Lines<T>& expected) {
  constexpr int tag_line = 53;
  const auto own = bands.owned(wire.rank());
  if (wire.rank() != 0) {
    for (std::size_t line = own.first; line < own.end; ++line) {
      wire.send(std::as_bytes(std::span(mine[line], bands.width)), 0, tag_line);
    }
    return 0;
  }
  std::size_t count = differing(mine, own, expected, bands.width);
  std::vector<T> theirs(bands.width);
  for (int rank = 1; rank < bands.ranks; ++rank) {
    const auto band = bands.owned(rank);
    for (std::size_t line = band.first; line < band.end; ++line) {
      wire.receive(std::as_writable_bytes(std::span(theirs)), rank, tag_line);
      count += differing<T>({theirs.data()}, {0, 1}, {expected[line]}, bands.width);
    }
  }
  return count;
}

}  // namespace tonari::bench
