#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The library that far_libraries.cpp loads.

inline constexpr std::size_t plugin_zeros = 6 << 20;   // 48 MiB
inline constexpr std::size_t plugin_values = 2 << 20;  // 16 MiB
inline constexpr std::size_t plugin_stride = 512;      // words in a page

struct Plugin {
  std::array<std::uint64_t, plugin_zeros>* zeros;    // without first values; word 100 is set to 6 by a constructor
  std::array<std::uint64_t, plugin_values>* values;  // with first values: 3, 1, and zeros; then 9 at the end
  // Threads that the constructor has started count up the first word of each third page of `zeros`, in turn, until they
  // are told to stop: the first round is in `rounds`. 0: there are none.
  std::atomic<std::uint64_t>* rounds;
  void (*stop)();
};

extern "C" Plugin far_plugin();
