// Far memory by name: a program that allocates one large table far, tells tonari how it will be used, and prints what
// that cost. Under `tonari far` other programs need no change at all; without it, this one uses plain memory.
//
//   tonari far --local 16M ./far_memory

#include <tonari/far.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace {

constexpr std::size_t table_bytes = 64u << 20;
constexpr std::size_t words = table_bytes / sizeof(std::uint64_t);

struct FreeFar {
  void operator()(void* start) const { tonari_far_free(start); }
};

}  // namespace

int main() {
  const std::unique_ptr<std::uint64_t, FreeFar> owner(static_cast<std::uint64_t*>(tonari_far_malloc(table_bytes)));
  std::uint64_t* const table = owner.get();
  if (table == nullptr) {
    std::fprintf(stderr, "far_memory: no memory for a table of %zu MiB\n", table_bytes >> 20);
    return 1;
  }
  // A hint may change the speed of what follows, never its result. Without far memory it does nothing.
  (void)tonari_far_advise(table, table_bytes, TONARI_FAR_SEQUENTIAL);

  for (std::size_t i = 0; i < words; ++i) table[i] = i * i;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < words; ++i) wrong += table[i] != std::uint64_t{i} * i ? 1 : 0;

  tonari_far_statistics counted{};
  if (tonari_far_get_statistics(&counted, sizeof counted) != 0) return 1;
  if (tonari_far_available() != 0) {
    std::printf("far memory: %zu wrong words; at most %llu MiB were local; servers sent %s\n", wrong,
                static_cast<unsigned long long>(counted.limit_bytes >> 20), counted.bytes_in > 0 ? "pages" : "nothing");
  } else {
    std::printf("plain memory: %zu wrong words\n", wrong);
  }
  return wrong == 0 ? 0 : 1;
}
