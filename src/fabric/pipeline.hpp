#pragma once

#include <array>
#include <cstddef>

namespace tonari::fabric {

/// The pieces of a copy that are under way, at most `pieces_max`, in the order in which they were begun.
///
/// Threads: the thread that copies.
template <class Piece, std::size_t pieces_max>
class Pipeline {
 public:
  /// Returns a piece that has not begun. If all have, ends the oldest first, by `end(piece)`.
  template <class End>
  Piece& next(const End& end) noexcept {
    if (begun_ - ended_ == pieces_max) end_oldest(end);
    return pieces_[begun_ % pieces_max];
  }
  /// Begins the piece that next() returned.
  void begin() noexcept { ++begun_; }
  /// Ends the oldest piece under way. Returns false if there is none.
  template <class End>
  bool end_oldest(const End& end) noexcept {
    if (ended_ == begun_) return false;
    end(pieces_[ended_++ % pieces_max]);
    return true;
  }
  template <class End>
  void end_all(const End& end) noexcept {
    while (end_oldest(end)) {
    }
  }
  [[nodiscard]] bool is_empty() const noexcept { return ended_ == begun_; }
  /// Calls visit(piece) for each piece under way.
  template <class Visit>
  void for_each(const Visit& visit) const noexcept {
    for (std::size_t i = ended_; i != begun_; ++i) visit(pieces_[i % pieces_max]);
  }

 private:
  std::array<Piece, pieces_max> pieces_;  // not zeroed first: a piece may be long
  std::size_t begun_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace tonari::fabric
