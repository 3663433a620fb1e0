#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace tonari::test {

using Random = std::mt19937_64;

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Returns how many times slower than usual this machine is (TONARI_TEST_SLOWNESS), for example as it is emulated.
inline int slowness() { return static_cast<int>(number_from_environment("TONARI_TEST_SLOWNESS", 1)); }

/// Returns the number of rounds of a test: `usual`, TONARI_SOAK times as many under `make soak`, and fewer on a slow
/// machine.
inline int rounds(int usual) {
  return std::max(usual * static_cast<int>(number_from_environment("TONARI_SOAK", 1)) / slowness(), 1);
}

/// Returns the seed of a random test: TONARI_SEED if it is set, otherwise a new one in each run. The test program
/// prints it.
inline std::uint64_t seed() {
  static const std::uint64_t value = number_from_environment("TONARI_SEED", std::random_device{}());
  return value;
}

/// Returns a random number from `first` to `last`, both included.
inline std::size_t between(Random& random, std::size_t first, std::size_t last) {
  return std::uniform_int_distribution<std::size_t>(first, last)(random);
}
inline bool chance(Random& random, unsigned percent) { return between(random, 1, 100) <= percent; }

/// Returns bytes that depend on `seed`. Seeds below 2^16 already differ in the first two bytes.
inline std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> result(bytes);
  std::uint64_t word = seed;
  for (std::size_t at = 0; at < bytes; at += sizeof word) {
    std::memcpy(result.data() + at, &word, std::min(sizeof word, bytes - at));
    word = word * 6364136223846793005 + 1442695040888963407;
  }
  return result;
}

}  // namespace tonari::test
