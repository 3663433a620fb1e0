#pragma once

#include "cli/launch.hpp"
#include "driver/child.hpp"
#include "driver/tight_memory.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// Who can be asked a question. The ring, the searches, the loops that compare and the bare copies are no runtimes:
/// what they do alone is compared with; local is a program of far memory by itself, in as much memory as it likes;
/// tonari_core is `tonari far --bind core`. UCX is asked by its own measurement, and few questions.
enum class Family : std::uint8_t {
  tonari,
  tonari_core,
  ring,
  lhs,
  no_lhs,
  byte_loop,
  memcmp,
  bare_memcpy,
  process_vm,
  openmpi,
  mpich,
  ucx,
  local,
  swap_zram,
  swap_file,
  mmap
};

struct System {
  Family family = Family::tonari;
  bool thread_multiple = false;  ///< An MPI started for any number of threads.

  bool operator==(const System&) const = default;
};

/// A question about far memory: the worker is a program that is started by `tonari far`, or in memory that the kernel
/// makes as tight.
struct FarAsk {
  int local_percent = 100;
  std::uint64_t data_bytes = 0;
  std::string servers;  ///< As `tonari far` takes it; empty: its default.
  std::string folder;   ///< For swap files and mapped ones.
};

/// What a worker is asked, of whatever system.
struct Ask {
  std::string question;
  cli::LaunchOptions launch;                     ///< Ranks, binding, hosts; environment for tonari alone.
  std::vector<std::string> arguments;            ///< For the worker: --key=value.
  std::vector<std::string> openmpi_arguments{};  ///< For Open MPI's launcher.
  std::optional<FarAsk> far{};
};

/// The systems that a list of rivals names: each MPI at its default and for any number of threads; "openmpi-default"
/// and "openmpi-mt" ask for one of both; "ucx"; "swap-zram", "swap-file" and "mmap". Throws SetupError on other names.
std::vector<System> parse_rivals(const std::vector<std::string>& names);

/// Throws SetupError with the remedy when `ask` cannot be put to `system` here.
void check_installed(const System& system, const Ask& ask);

/// How `ask` is put to `system`; its rank 0 writes results to `output`.
Command command_for(const System& system, const Ask& ask, const std::string& output);

/// What has to be there while `system` is asked: for swap and mapped files a cgroup and what its pages go to.
std::unique_ptr<MadeTight> make_surroundings(const System& system, const Ask& ask);

/// For progress, before a system has told its name and version.
std::string to_string(const System& system);

}  // namespace tonari::bench::driver
