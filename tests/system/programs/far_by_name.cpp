// A program that asks for far memory by its name. Prints "far" or "local", and "ok" if all is as it must be.

#include <tonari/far.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace far = tonari::far;

int main() {
  const bool is_far = far::available();
  std::puts(is_far ? "far" : "local");
  std::vector<std::uint64_t, far::allocator<std::uint64_t>> numbers(4 << 20);
  std::iota(numbers.begin(), numbers.end(), 1);

  const std::span all(numbers);
  for (const far::Hint hint : {far::Hint::will_need, far::Hint::done_with, far::Hint::sequential, far::Hint::random}) {
    if (far::advise(all, hint) != 0) return 1;
  }
  if (std::reduce(all.begin(), all.end()) != all.size() * (all.size() + 1) / 2) return 2;
  if (is_far) {
    if (far::advise(all.subspan(1, 8), far::Hint::discard) != EINVAL) return 3;
    if (far::advise(all.first(1 << 20), far::Hint::discard) != 0) return 4;
    if (all[0] != 0 || all[(1 << 20) - 1] != 0 || all[1 << 20] != (1 << 20) + 1) return 5;
    int local = 0;
    if (far::advise(std::span(&local, 1), far::Hint::will_need) != ENOMEM) return 6;
  }
  if (tonari_far_advise(all.data(), 8, 99) != EINVAL || tonari_far_advise(all.data(), 8, 1) != EINVAL) return 7;
  const tonari_far_statistics found = far::statistics();
  if (is_far != (found.in_use_bytes >= all.size_bytes() && found.limit_bytes != 0 && found.local_bytes != 0)) return 9;
  if (is_far != (found.faults != 0 && found.wait_ns != 0 && found.bytes_out >= 16 << 20)) return 10;
  std::uint64_t first_alone[2] = {1, 1};
  auto* const first = reinterpret_cast<tonari_far_statistics*>(first_alone);
  if (tonari_far_get_statistics(first, 8) != 0 || first_alone[0] != found.in_use_bytes || first_alone[1] != 1)
    return 11;
  if (tonari_far_get_statistics(nullptr, 8) != EINVAL) return 12;

  void* const little = tonari_far_malloc(10);
  if (little == nullptr || is_far != (reinterpret_cast<std::uintptr_t>(little) % 4096 == 0)) return 8;
  tonari_far_free(little);
  std::puts("ok");
  return 0;
}
