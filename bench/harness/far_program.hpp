#pragma once

#include "harness/worker.hpp"

#include <fcntl.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tonari::bench::far {

// Shared by the programs that measure far memory. They know nothing of tonari: the command that starts one decides
// whether its memory is local, far, swapped or a file. Common options:
//
//   --output=FILE     the file for the results, in the format of worker.hpp
//   --system=NAME     the name of the system in the results
//   --local=PERCENT   the part of the data that is local; only written to the results
//   --threads=N       the number of OpenMP threads
//   --file=PATH       maps this file for the data; without it, the data is in memory from malloc
//   --budget-s=S      ends measuring after S seconds, once there are two samples

/// Returns the seconds since the machine started.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns a pseudo-random function of a number, so that pages of such numbers cannot be compressed.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The same as a fraction from 0 to 1 with 32 bits, so that sums of a few of them are exact.
inline double fraction(std::uint64_t x) { return static_cast<double>(mix(x) >> 32) / 4294967296.0; }

/// All the data of a program, in huge pages if the kernel has some.
///
/// Owns the memory, not the file: the process that chose the file removes it.
class Data {
 public:
  Data(const Options& options, std::size_t bytes) : bytes_(bytes) {
    const auto path = options.text("file", "");
    if (path.empty()) {
      memory_ = std::aligned_alloc(huge_page_bytes, (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes);
      if (memory_ == nullptr) fail("no memory for " + std::to_string(bytes) + " bytes");
      ::madvise(memory_, bytes, MADV_HUGEPAGE);
      return;
    }
    is_file_ = true;
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("cannot make " + path);
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory_ == MAP_FAILED) fail("cannot map " + path);
    ::close(file);
  }
  Data(Data&&) = delete;
  ~Data() {
    if (is_file_) {
      ::munmap(memory_, bytes_);
    } else {
      std::free(memory_);
    }
  }

  /// Returns the array `index` of `arrays` arrays of equal length.
  template <class Number>
  [[nodiscard]] Number* array(std::size_t index, std::size_t arrays) const {
    return static_cast<Number*>(memory_) + index * (bytes_ / sizeof(Number) / arrays);
  }

 private:
  static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

  [[noreturn]] static void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
  }

  std::size_t bytes_;
  void* memory_ = nullptr;
  bool is_file_ = false;
};

/// The main() of such a program; `measure` measures.
inline int run(int argc, char** argv, void (*measure)(const Options&, Output&)) {
  try {
    const Options options(argc, argv, 1);
    omp_set_num_threads(static_cast<int>(options.number("threads", 1)));
    Output output(options, 0);
    output.system(options.text("system", "local"));
    measure(options, output);
    output.done();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

/// Collects the samples of a program, and the check of its result.
class Answers {
 public:
  Answers(const Options& options, Output& output, std::string label)
      : output_(output), local_(options.number("local", 100)), label_(std::move(label)) {}

  void add(const std::string& metric, const std::string& unit, const std::vector<double>& samples) {
    output_.samples({label_, metric, unit, x}, local_, samples);
  }
  void check(const std::string& metric, double value, double bound) {
    output_.check({label_, metric, "", x}, local_, value, bound);
  }

 private:
  static constexpr const char* x = "local %";

  Output& output_;
  double local_;
  std::string label_;
};

/// The name of the case with this number of threads.
inline std::string threads_label(const Options& options) {
  return "threads=" + std::to_string(static_cast<int>(options.number("threads", 1)));
}

}  // namespace tonari::bench::far
