#pragma once

#include "driver/child.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace tonari::bench::driver {

/// The storage for pages that do not fit.
enum class Overflow : std::uint8_t {
  swap_zram,  ///< Swap on a zram device, created for this.
  swap_file,  ///< Swap on a file.
  file,       ///< The mapped file that contains the program's data.
};

/// Limited memory of a program: a memory cgroup, and the storage for pages that do not fit.
struct TightMemory {
  Overflow overflow = Overflow::swap_zram;
  std::uint64_t limit_bytes = 0;     ///< The limit of the cgroup.
  std::uint64_t overflow_bytes = 0;  ///< The size of the swap; a mapped file is created by the program.
  std::filesystem::path folder;      ///< For swap files and mapped files.
};

/// Returns the path of the file that a program in such memory maps.
std::filesystem::path mapped_file(const TightMemory& memory);
/// Returns `command`, changed to run in the cgroup.
Command in_cgroup(Command command);

/// Throws SetupError, which names the missing prerequisite, if such memory cannot be created here.
void check_tight_memory(Overflow overflow);

/// Creates the cgroup and the swap; the destructor removes them, and the mapped file. At most one object exists per
/// process, whose number is part of their names.
class MadeTight {
 public:
  explicit MadeTight(const TightMemory& memory);  ///< Throws SetupError after removing all that it created.
  MadeTight(MadeTight&&) = delete;

  /// A created resource; its destructor removes it.
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
