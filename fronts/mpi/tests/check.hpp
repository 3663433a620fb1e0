#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <type_traits>

// For the programs of this folder. A failed check names the line and the rank, and ends the job.
#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) test::fail(__FILE__, __LINE__, #condition); \
  } while (false)
/// Both sides are printed if they differ.
#define CHECK_EQUAL(left, right) test::check_equal(__FILE__, __LINE__, #left " == " #right, left, right)

namespace test {

inline int rank() {
  int mine = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  return mine;
}
inline int ranks() {
  int all = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  return all;
}

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  int began = 0;
  int ended = 0;
  MPI_Initialized(&began);
  MPI_Finalized(&ended);
  if (began == 0 || ended != 0) {
    std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, what.c_str());
    std::_Exit(1);
  }
  std::fprintf(stderr, "%s:%d: rank %d: not true: %s\n", file, line, rank(), what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    return value;
  } else {
    return "?";
  }
}

template <class T, class U>
void check_equal(const char* file, int line, const char* what, const T& left, const U& right) {
  if (!(left == right)) fail(file, line, std::string(what) + ": " + text_of(left) + " and " + text_of(right));
}

/// Returns a seed that is the same on all ranks: TONARI_SEED, or a new one, which rank 0 draws, prints and broadcasts.
inline unsigned seed() {
  unsigned value = 0;
  if (const char* text = std::getenv("TONARI_SEED"); text != nullptr) {
    value = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  } else {
    if (rank() == 0) value = std::random_device()();
    if (ranks() > 1) MPI_Bcast(&value, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  }
  if (rank() == 0) std::printf("To repeat this run, set TONARI_SEED=%u\n", value);
  return value;
}

/// The same for one rank, without a message: each rank draws its own.
inline unsigned own_seed() {
  const char* const text = std::getenv("TONARI_SEED");
  const auto value = text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : std::random_device()();
  std::printf("To repeat rank %d, set TONARI_SEED=%u\n", rank(), value);
  return value;
}

}  // namespace test
