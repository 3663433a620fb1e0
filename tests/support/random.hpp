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

/// How many times as slow this machine is as usual, emulated perhaps: TONARI_TEST_SLOWNESS.
inline int slowness() { return static_cast<int>(number_from_environment("TONARI_TEST_SLOWNESS", 1)); }

/// How often a test does what it repeats: `usual` times, TONARI_SOAK times as often under `make soak`, less often on a
/// slow machine.
inline int rounds(int usual) {
  return std::max(usual * static_cast<int>(number_from_environment("TONARI_SOAK", 1)) / slowness(), 1);
}

/// The seed of a random test: TONARI_SEED if it is set, under `make soak` a new one, otherwise always the same.
inline std::uint64_t seed() {
  static const std::uint64_t value = number_from_environment(
      "TONARI_SEED", number_from_environment("TONARI_SOAK", 1) > 1 ? std::random_device{}() : 1);
  return value;
}

/// Numbers from `first` to `last`, both included.
inline std::size_t between(Random& random, std::size_t first, std::size_t last) {
  return std::uniform_int_distribution<std::size_t>(first, last)(random);
}
inline bool chance(Random& random, unsigned percent) { return between(random, 1, 100) <= percent; }

/// Bytes that depend on `seed`: seeds below 2^16 differ in the first two bytes already.
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
