#pragma once

#include <tonari/share.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace tonari::bench {

inline constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

/// Pages of a shared array whose home is rank 1, which has written all of them. Construction is collective.
class RemotePages {
 public:
  RemotePages(Job& job, std::size_t pages) : array_(job, pages * page_words, at_rank_1()) {
    if (job.rank() == 1) {
      for (std::size_t page = 0; page < pages; ++page) word(page) = page + 1;
    }
    meet(job);
  }
  /// Returns the first word of a page. It is volatile, so that the compiler makes each access.
  [[nodiscard]] volatile std::uint64_t& word(std::size_t page) const { return array_[page * page_words]; }
  static void meet(Job& job) {
    if (share::barrier(job) != Status::ok) throw std::runtime_error("a rank died");
  }

 private:
  static ArrayOptions at_rank_1() {
    ArrayOptions options;
    options.placement = Placement::by_function;
    options.home = [](std::uint64_t) { return JobRank{1}; };
    options.homes_move = false;
    return options;
  }
  shared_array<std::uint64_t> array_;
};

}  // namespace tonari::bench
