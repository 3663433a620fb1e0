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

// What the programs of far memory share. They know nothing of tonari: whether their memory is local, far, swapped or a
// file is up to who starts them. Options, beside each one's own:
//
//   --output=FILE     where the results go, as lines of worker.hpp
//   --system=NAME     what the results are called
//   --local=PERCENT   what part of the data is local; told with the results, and not used otherwise
//   --threads=N       of OpenMP
//   --file=PATH       the data lies in this file, mapped; without it, in memory of malloc's
//   --budget-s=S      measuring ends after so many seconds, when there are two samples

/// Seconds since the machine started.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A number that follows from another one, with no pattern that a page could be compressed by.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// From 0 to 1, in 32 bits: sums of a few such numbers are exact.
inline double fraction(std::uint64_t x) { return static_cast<double>(mix(x) >> 32) / 4294967296.0; }

/// All the data of a program, in huge pages where the kernel has some.
///
/// Owns: the memory; the file stays, for who named it removes it.
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

  /// The `index`-th of `arrays` of the same length.
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

/// What every program's main does: `measure` does the rest.
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

/// One question's answers: its samples, and what of its result is wrong.
class Answers {
 public:
  Answers(const Options& options, Output& output, std::string label)
      : output_(output), local_(options.number("local", 100)), label_(std::move(label)) {}

  void add(const std::string& metric, const std::string& unit, const std::vector<double>& samples) {
    output_.samples({label_, metric, unit, x}, local_, samples);
  }
  void check(const std::string& metric, double value, double bound) {
    output_.check({label_, metric, "1", x}, local_, value, bound);
  }

 private:
  static constexpr const char* x = "local %";

  Output& output_;
  double local_;
  std::string label_;
};

/// The case of a program that is measured with several numbers of threads.
inline std::string threads_label(const Options& options) {
  return "threads=" + std::to_string(static_cast<int>(options.number("threads", 1)));
}

}  // namespace tonari::bench::far
