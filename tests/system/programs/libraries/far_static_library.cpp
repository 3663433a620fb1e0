#include "../far_static.hpp"

namespace {

LibraryWords values{2};
LibraryWords zeros;

// Runs before the constructor of the preload library.
struct Early {
  Early() {
    zeros[777] = 8;
    values[library_count - 1] = 7;
  }
} early;

}  // namespace

std::array<std::uint64_t, (1 << 20) + 5> library_exported{9};

LibraryWords& library_values() { return values; }
LibraryWords& library_zeros() { return zeros; }
