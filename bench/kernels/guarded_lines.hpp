#pragma once

#include "kernels/bands.hpp"
#include "kernels/shared_lines.hpp"

#include <tonari/guarded.hpp>

#include <cstddef>
#include <map>
#include <vector>

namespace tonari::bench {

/// A rank's band in its own memory, except for the first and last line, which the neighbours read. These two are
/// guarded data: the neighbours have copies, which are updated after each write.
template <class T>
class GuardedLines {
 public:
  GuardedLines(Job& job, const Bands& bands) : band_(bands.of(job.rank().value())), lines_(bands.lines()) {
    const Band own = bands.owned(job.rank().value());
    values_.resize((own.end - own.first) * bands.width);
    for (std::size_t line = own.first; line < own.end; ++line) {
      lines_[line] = values_.data() + (line - own.first) * bands.width;
    }
    for (int rank = 0; rank < bands.ranks; ++rank) {
      const GuardedOptions options{.on_write = OnWrite::update, .home = JobRank{rank}};
      const Band band = bands.of(rank);
      if (rank != 0) edges_.try_emplace(band.first, job, bands.width, options);
      if (rank + 1 != bands.ranks) edges_.try_emplace(band.end - 1, job, bands.width, options);
    }
    each_edge({band_.first - 1, band_.end + 1}, [&](std::size_t line, auto& edge) {
      lines_[line] = const_cast<T*>(edge.read().data());  // written only within the band, and under the lock of write()
    });
  }

  [[nodiscard]] const Lines<T>& lines() const noexcept { return lines_; }

  /// Locks the band and the adjacent lines for reading, as long as the result lives.
  [[nodiscard]] std::vector<GuardedAccess<const T>> read() {
    std::vector<GuardedAccess<const T>> locks;
    each_edge({band_.first - 1, band_.end + 1},
              [&](std::size_t, auto& edge) { require(locks.emplace_back(edge.read()).status()); });
    return locks;
  }
  /// Locks the band for writing, as long as the result lives. Its end sends the edges to the neighbours.
  [[nodiscard]] std::vector<GuardedAccess<T>> write() {
    std::vector<GuardedAccess<T>> locks;
    each_edge(band_, [&](std::size_t, auto& edge) { require(locks.emplace_back(edge.write()).status()); });
    return locks;
  }

 private:
  /// Visits edges in the order of lines, so that ranks cannot wait for each other's locks in a cycle.
  template <class Visit>
  void each_edge(Band band, Visit visit) {
    const auto end = edges_.lower_bound(band.end);
    for (auto edge = edges_.lower_bound(band.first); edge != end; ++edge) visit(edge->first, edge->second);
  }

  Band band_;
  std::vector<T> values_;
  std::map<std::size_t, guarded_span<T>> edges_;  // of all ranks, by line
  Lines<T> lines_;
};

}  // namespace tonari::bench
