#pragma once

#include <tonari/share.hpp>

#include <cstdint>
#include <vector>

namespace tonari::share {

/// Where the pages of an array have their homes at first. The same in all ranks.
class PagePlacement {
 public:
  /// Throws SetupError: an option is wrong.
  PagePlacement(std::uint64_t bytes, int ranks, const ArrayOptions& options);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< Whole pages.
  [[nodiscard]] std::uint64_t pages() const noexcept;
  [[nodiscard]] bool by_first_touch() const noexcept { return placement_ == Placement::first_touch; }
  [[nodiscard]] int home_of(std::uint64_t page) const noexcept;
  /// Of the page with a byte. Beyond the array's end it is misuse; without assertions, the last page's.
  [[nodiscard]] int home_of_byte(std::uint64_t offset, int own_rank) const noexcept;
  /// Names what a program says that it has written, and that is not in the array's pages.
  void expect_inside(std::uint64_t offset, std::uint64_t bytes, int own_rank) const noexcept;
  /// The pages from `page` on that have the same home, up to the array's end.
  [[nodiscard]] std::uint64_t run_at(std::uint64_t page) const noexcept;
  /// A number that differs where plans do.
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  struct Run {
    std::uint64_t end;  // the first page behind it
    int home;
  };
  [[nodiscard]] const Run& named_run(std::uint64_t page) const noexcept;

  std::uint64_t asked_bytes_;
  std::uint64_t bytes_;
  std::uint64_t ranks_;
  Placement placement_;
  std::uint64_t stripe_pages_;     // that one rank has side by side
  std::vector<Run> named_runs_{};  // by page; of Placement::by_function
};

}  // namespace tonari::share
