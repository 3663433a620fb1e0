#pragma once

#include <tonari/share.hpp>

#include <cstdint>
#include <vector>

namespace tonari::share {

/// The initial homes of an array's pages. The same in all ranks.
class PagePlacement {
 public:
  /// Throws SetupError if an option is wrong.
  PagePlacement(std::uint64_t bytes, int ranks, const ArrayOptions& options);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< Whole pages.
  [[nodiscard]] std::uint64_t pages() const noexcept;
  [[nodiscard]] bool by_first_touch() const noexcept { return placement_ == Placement::first_touch; }
  [[nodiscard]] int home_of(std::uint64_t page) const noexcept;
  /// Returns the home of the page with byte `offset`. An offset beyond the array's end is reported as misuse; without
  /// assertions it returns the last page's home.
  [[nodiscard]] int home_of_byte(std::uint64_t offset, int own_rank) const noexcept;
  /// Reports as misuse a written range that is not inside the array's pages.
  void expect_inside(std::uint64_t offset, std::uint64_t bytes, int own_rank) const noexcept;
  /// Returns how many pages from `page` on have the same home, at most up to the array's end.
  [[nodiscard]] std::uint64_t run_at(std::uint64_t page) const noexcept;
  /// Returns a hash by which ranks notice that their placements differ.
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  struct Run {
    std::uint64_t end;  // the first page after the run
    int home;
  };
  [[nodiscard]] const Run& named_run(std::uint64_t page) const noexcept;

  std::uint64_t asked_bytes_;
  std::uint64_t bytes_;
  std::uint64_t ranks_;
  Placement placement_;
  std::uint64_t stripe_pages_;     // adjacent pages per rank
  std::vector<Run> named_runs_{};  // sorted by page; only for Placement::by_function
};

}  // namespace tonari::share
