#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The static arrays of the library that far_static.cpp is linked with.

inline constexpr std::size_t library_count = 2 << 20;  // 16 MiB each
using LibraryWords = std::array<std::uint64_t, library_count>;

LibraryWords& library_values();
LibraryWords& library_zeros();                                     // element 777 is set to 8 before main()
extern std::array<std::uint64_t, (1 << 20) + 5> library_exported;  // begins with 9
