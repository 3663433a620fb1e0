#pragma once

#include "check.hpp"

#include <random>

// Random choices for the tests of collectives.
namespace test {

inline std::mt19937 shared_random;   ///< The same on all ranks.
inline std::mt19937 private_random;  ///< Each rank's own choices, of types, displacements and orders.

/// Returns a number from 0 to end - 1.
inline int below(std::mt19937& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

/// Seeds both, with the seed that rank 0 prints.
inline void seed_choices() {
  const unsigned first = seed();
  shared_random.seed(first);
  private_random.seed(first + 1 + static_cast<unsigned>(rank()));
}

}  // namespace test
