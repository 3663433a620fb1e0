// A program whose data are static. Prints their sum.

#include <cstdio>
#include <numeric>

namespace {
constexpr std::size_t bytes = 32 << 20;
unsigned char data[bytes];
}  // namespace

int main() {
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i % 5);
  std::printf("%llu\n", std::accumulate(data, data + bytes, 0ULL));
}
