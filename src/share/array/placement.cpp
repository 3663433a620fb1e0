#include "share/array/placement.hpp"

#include "share/array/page_block.hpp"
#include "share/misuse.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tonari::share {

namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) noexcept {
  return (value + step - 1) / step * step;
}

}  // namespace

PagePlacement::PagePlacement(std::uint64_t bytes, int ranks, const ArrayOptions& options)
    : asked_bytes_(bytes),
      bytes_(round_up(std::max<std::uint64_t>(bytes, 1), page_bytes)),
      ranks_(static_cast<std::uint64_t>(ranks)),
      placement_(options.placement),
      stripe_pages_(placement_ == Placement::cyclic
                        ? round_up(std::min(options.cyclic_bytes, bytes_), page_bytes) / page_bytes
                        : round_up(pages(), ranks_) / ranks_) {
  if (bytes_ < bytes) throw SetupError(fmt::format("a shared array of {} bytes: no program has so many", bytes));
  if (placement_ > Placement::by_function) {
    throw SetupError(fmt::format("a shared array: ArrayOptions::placement is {}, which is none that there is",
                                 static_cast<int>(placement_)));
  }
  if (stripe_pages_ == 0) throw SetupError("a shared array placed in turn: cyclic_bytes is 0");
  if (placement_ != Placement::by_function) return;
  if (!options.home) throw SetupError("a shared array placed by a function: ArrayOptions::home is empty");
  for (std::uint64_t page = 0; page < pages(); ++page) {
    const int home = options.home(page * page_bytes).value();
    if (home < 0 || home >= ranks) {
      throw SetupError(
          fmt::format("a shared array placed by a function: it returns rank {} for byte {}, and the job "
                      "has {} ranks",
                      home, page * page_bytes, ranks));
    }
    if (!named_runs_.empty() && named_runs_.back().home == home) {
      named_runs_.back().end = page + 1;
    } else {
      named_runs_.push_back({page + 1, home});
    }
  }
}

std::uint64_t PagePlacement::pages() const noexcept { return bytes_ / page_bytes; }

const PagePlacement::Run& PagePlacement::named_run(std::uint64_t page) const noexcept {
  return *std::ranges::upper_bound(named_runs_, page, {}, &Run::end);
}

int PagePlacement::home_of(std::uint64_t page) const noexcept {
  if (placement_ == Placement::by_function) return named_run(page).home;
  return static_cast<int>(page / stripe_pages_ % ranks_);
}

void PagePlacement::expect_inside(std::uint64_t offset, std::uint64_t bytes, int own_rank) const noexcept {
  if (!has_assertions || (offset <= bytes_ && bytes <= bytes_ - offset)) return;
  name_misuse(own_rank, "wrote() names {} bytes from byte {} on of a shared array of {}", bytes, offset, asked_bytes_);
}

int PagePlacement::home_of_byte(std::uint64_t offset, int own_rank) const noexcept {
  if (has_assertions && offset >= asked_bytes_) {
    name_misuse(own_rank, "home_of() is asked about byte {} of a shared array of {} bytes", offset, asked_bytes_);
  }
  return home_of(std::min(offset / page_bytes, pages() - 1));
}

std::uint64_t PagePlacement::run_at(std::uint64_t page) const noexcept {
  const std::uint64_t end =
      placement_ == Placement::by_function ? named_run(page).end : (page / stripe_pages_ + 1) * stripe_pages_;
  return std::min(end, pages()) - page;
}

std::uint64_t PagePlacement::digest() const noexcept {
  constexpr std::uint64_t prime = 0x100000001b3;  // FNV-1a's
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&digest](std::uint64_t word) { digest = (digest ^ word) * prime; };
  for (const std::uint64_t word : {bytes_, ranks_, static_cast<std::uint64_t>(placement_), stripe_pages_}) add(word);
  for (const Run& run : named_runs_) {
    add(run.end);
    add(static_cast<std::uint64_t>(run.home));
  }
  return digest;
}

}  // namespace tonari::share
