#pragma once

#include "driver/child.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace tonari::bench::driver {

/// Where the kernel has to put what does not fit.
enum class Overflow : std::uint8_t {
  swap_zram,  ///< Swap on a zram device, made for this.
  swap_file,  ///< Swap on a file.
  file,       ///< The program's data is a mapped file: that.
};

/// A program's memory as the kernel makes it tight: a memory cgroup, and what its pages may go to.
struct TightMemory {
  Overflow overflow = Overflow::swap_zram;
  std::uint64_t limit_bytes = 0;     ///< Of the cgroup.
  std::uint64_t overflow_bytes = 0;  ///< Of the swap; the mapped file is the program's to make.
  std::filesystem::path folder;      ///< For swap files and mapped ones.
};

/// The file that a program in such memory maps.
std::filesystem::path mapped_file(const TightMemory& memory);
/// `command`, to be run in the cgroup.
Command in_cgroup(Command command);

/// Throws SetupError, saying what is missing, where such memory cannot be made.
void check_tight_memory(Overflow overflow);

/// The cgroup and the swap as long as this lives; then they are gone, and the mapped file too. One at a time in a
/// process: what they are called has its number in it.
class MadeTight {
 public:
  explicit MadeTight(const TightMemory& memory);  ///< Throws SetupError; what was made by then is removed.
  MadeTight(MadeTight&&) = delete;

  /// What was made and has to be removed, whatever happens.
  struct Part {
    Part() = default;
    Part(Part&&) = delete;
    virtual ~Part() = default;
  };

 private:
  std::unique_ptr<Part> overflow_;  // removed last
  std::unique_ptr<Part> swap_;
  std::unique_ptr<Part> cgroup_;
};

}  // namespace tonari::bench::driver
