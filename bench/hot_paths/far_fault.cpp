// The page fault of far memory, for scripts/hot-paths. `tonari far` runs this program, which knows nothing of tonari,
// and strace counts. Touches pages far from each other, so that no page is read ahead. Usage: hot_path_far ROUNDS MIB

#include "hot_paths/mark.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace tonari::bench::hot_paths;
  if (argc != 3) return 2;
  const auto rounds = static_cast<std::size_t>(std::atoi(argv[1]));
  constexpr std::size_t page_bytes = 4096;
  const std::size_t pages = static_cast<std::size_t>(std::atoi(argv[2])) * (std::size_t{1} << 20) / page_bytes;
  auto* const memory = static_cast<volatile std::uint64_t*>(std::malloc(pages * page_bytes));
  if (memory == nullptr) return 1;
  const auto word = [&](std::size_t page) -> volatile std::uint64_t& { return memory[page * page_bytes / 8]; };
  for (std::size_t page = 0; page < pages; ++page) word(page) = page + 1;
  bool right = true;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t page = round * 7919 % pages;
    mark_begin("far-fault:read");
    right = word(page) == page + 1 && right;
    mark_end();
  }
  return right ? 0 : 1;
}
